# Completion of cubindctl for fish, made by `cubindctl completion fish`.
function __cubindctl_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l option (string match -r -- '^--[^=]*=' "$current")
    for line in ($words[1] __complete $words[2..-1] "$current" 2>/dev/null)
        switch $line
            case :files
                printf "$option%s\n" (complete -C "'' "(string replace -- "$option" '' "$current"))
            case :folders
                printf "$option%s\n" (__fish_complete_directories (string replace -- "$option" '' "$current") '')
            case '*'
                echo $line
        end
    end
end
complete -c cubindctl -f -a '(__cubindctl_complete)'
