import Testing

@testable import ACME

@Suite("URLs of ACME servers")
struct PlaceTests {
  @Test(
    "`Host` has no default port, which servers with several names do not expect",
    arguments: [
      ("https://ca.example/directory", "ca.example", UInt16(443)), ("https://ca.example:443/a?b", "ca.example", 443),
      ("https://ca.example:14000/a", "ca.example:14000", 14000), ("https://ca.example:4430", "ca.example:4430", 4430),
      ("https://[2001:db8::1]:443/a", "[2001:db8::1]", 443), ("https://[2001:db8::443]/a", "[2001:db8::443]", 443),
    ])
  func authority(_ url: String, _ authority: String, _ port: UInt16) throws {
    let place = try #require(HTTPSPlace(url))
    #expect(place.authority == authority && place.port == port)
  }
}
