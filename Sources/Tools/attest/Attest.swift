internal import Commands
internal import Glibc
internal import ProcessSignals
internal import TransportEngine

@main
enum Attest {
  static func main() async {
    StandardDescriptors.occupy()
    ProcessSignals.keepEndedChildren()
    OpenSSLProcess.prepare()
    exit(await AttestTool.execute())
  }
}
