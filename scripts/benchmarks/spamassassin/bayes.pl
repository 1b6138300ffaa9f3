# Scores of SpamAssassin's Bayes without its other rules:
#
#     perl bayes.pl SETTINGS DATABASE < paths of messages
use Mail::SpamAssassin;
use Mail::SpamAssassin::PerMsgStatus;
my ($settings, $database) = @ARGV;
my $sa = Mail::SpamAssassin->new({
    rules_filename => $settings, site_rules_filename => $settings, local_tests_only => 1,
    userprefs_filename => "$settings/bayes.cf", userstate_dir => $settings, dont_copy_prefs => 1,
    post_config_text => "bayes_path $database\n"});
$sa->init(1);
my ($bayes) = grep { ref eq 'Mail::SpamAssassin::Plugin::Bayes' } @{$sa->{plugins}{plugins}};
while (my $path = <STDIN>) {
    chomp $path;
    open my $file, '<:raw', $path or die "$path: $!";
    my $mail = $sa->parse([<$file>], 0);
    my $status = Mail::SpamAssassin::PerMsgStatus->new($sa, $mail);
    $status->extract_message_metadata;
    # Without a word that it knows, it gives no score.
    printf "%s %.17g\n", $path, $bayes->scan($status, $mail) // 0.5;
    $status->finish;
    $mail->finish;
}
