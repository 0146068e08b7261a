internal import AttestTool
internal import Glibc

@main
enum Attest {
  static func main() async { exit(await AttestTool.execute()) }
}
