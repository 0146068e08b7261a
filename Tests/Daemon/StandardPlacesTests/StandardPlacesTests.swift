import Commands
import Testing

@Suite("The standard places")
struct StandardPlacesTests {
  @Test(
    "SALLYPORT_ROOT puts every standard place below its folder",
    arguments: [
      (nil, "/run/mfa/admin.sock"), ("", "/run/mfa/admin.sock"), ("/", "/run/mfa/admin.sock"),
      ("/srv/a", "/srv/a/run/mfa/admin.sock"), ("/srv/a//", "/srv/a/run/mfa/admin.sock"),
      // Not ignored: a command must not reach a server of the machine by mistake.
      ("a", "a/run/mfa/admin.sock"), (".", "./run/mfa/admin.sock"),
    ] as [(String?, String)])
  func root(_ root: String?, _ path: String) {
    #expect(StandardPlaces.path("/run/mfa/admin.sock", in: root.map { ["SALLYPORT_ROOT": $0] } ?? [:]) == path)
  }
}
