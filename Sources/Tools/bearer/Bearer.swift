internal import Commands
internal import Glibc
internal import ProcessSignals

@main
enum Bearer {
  static func main() async {
    StandardDescriptors.occupy()
    ProcessSignals.keepEndedChildren()
    ProcessSecrecy.begin()
    TemporaryFileRegistry.endWithSignals()
    exit(await BearerTool.execute())
  }
}
