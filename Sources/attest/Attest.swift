internal import AttestTool
internal import Glibc
internal import TransportEngine

@main
enum Attest {
  static func main() async {
    OpenSSLProcess.prepare()
    exit(await AttestTool.execute())
  }
}
