// The commands. Each prints its result on standard output and returns the exit code; faults are thrown as
// Error.
#pragma once

#include "client/cubindctl/options.hpp"
#include "client/cubindctl/terminal/exit_code.hpp"

namespace cubind::ctl {

ExitCode run(const TuneOptions& options, const CommonOptions& common);
ExitCode run(const VerifyOptions& options, const CommonOptions& common);
ExitCode run(const GetOptions& options, const CommonOptions& common);
ExitCode run(const CoverOptions& options, const CommonOptions& common);
ExitCode run(const AuditOptions& options, const CommonOptions& common);
ExitCode run(const ExportOptions& options, const CommonOptions& common);
ExitCode run(const ImportOptions& options, const CommonOptions& common);
ExitCode run(const BundleCreateOptions& options, const CommonOptions& common);
ExitCode run(const BundleVerifyOptions& options, const CommonOptions& common);
ExitCode run(const BundleShowOptions& options, const CommonOptions& common);
ExitCode run(const BackupOptions& options, const CommonOptions& common);
ExitCode run(const TableCheckOptions& options, const CommonOptions& common);
ExitCode run(const TableDiffOptions& options, const CommonOptions& common);
ExitCode run(const TableMergeOptions& options, const CommonOptions& common);
ExitCode run(const KernelsOptions& options, const CommonOptions& common);
ExitCode run(const CheckOptions& options, const CommonOptions& common);
ExitCode run(const InitOptions& options, const CommonOptions& common);
ExitCode run(const SchemaOptions& options, const CommonOptions& common);
ExitCode run(const WantedOptions& options, const CommonOptions& common);
ExitCode run(const DevicesOptions& options, const CommonOptions& common);
ExitCode run(const JobsOptions& options, const CommonOptions& common);
ExitCode run(const JobsShowOptions& options, const CommonOptions& common);
ExitCode run(const CancelOptions& options, const CommonOptions& common);
ExitCode run(const ForgetOptions& options, const CommonOptions& common);
ExitCode run(const JudgeOptions& options, const CommonOptions& common);
ExitCode run(const TokenNewOptions& options, const CommonOptions& common);
ExitCode run(const TokenListOptions& options, const CommonOptions& common);
ExitCode run(const TokenRevokeOptions& options, const CommonOptions& common);
ExitCode run(const ExplainOptions& options, const CommonOptions& common);
ExitCode run(const ProfileOptions& options, const CommonOptions& common);
ExitCode run(const ReportOptions& options, const CommonOptions& common);
ExitCode run(const StatusOptions& options, const CommonOptions& common);
ExitCode run(const HealthOptions& options, const CommonOptions& common);
ExitCode run(const CompletionOptions& options, const CommonOptions& common);

}  // namespace cubind::ctl
