internal import Commands
internal import Glibc
internal import ProcessSignals

@main
enum Authenticator {
  static func main() async {
    StandardDescriptors.occupy()
    ProcessSignals.keepEndedChildren()
    ProcessSecrecy.begin()
    TemporaryFileRegistry.endWithSignals()
    exit(await AuthenticatorTool.execute())
  }
}
