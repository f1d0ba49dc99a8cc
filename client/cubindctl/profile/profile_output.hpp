// A profile as text and as JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <ostream>

#include "client/answer.hpp"
#include "client/cubindctl/profile/diagnosis.hpp"
#include "client/cubindctl/profile/variant_profile.hpp"
#include "client/cubindctl/terminal/json_output.hpp"

namespace cubind::ctl {

/// The document that docs/cli.md describes.
OutputJson json_of(const VariantProfile& profile, const Answer& answer, const Diagnosis& diagnosis);

/// `columns`: of the terminal, 0 where there is none.
void print(std::ostream& out, const VariantProfile& profile, const Answer& answer, const Diagnosis& diagnosis,
           std::size_t columns);

}  // namespace cubind::ctl
