internal import AttestTool
internal import Glibc
internal import TransportEngine

@main
enum Attest {
  static func main() async {
    RecordBuffers.keep()
    exit(await AttestTool.execute())
  }
}
