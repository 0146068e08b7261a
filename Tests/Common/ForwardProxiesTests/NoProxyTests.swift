import TestSupport
import Testing

@testable import Wire

@Suite("Hosts that are reached without a proxy", .timeLimit(.minutes(2)))
struct NoProxyTests {
  /// A value of `no_proxy`, and the hosts that are tried with it.
  private static let table: [(value: String, hosts: [String])] = [
    (
      "example.com",
      ["example.com", "EXAMPLE.com", "www.example.com", "notexample.com", "example.com.", "com", "example.org"]
    ),
    (".example.com", ["example.com", "www.example.com", "a.b.example.com", "notexample.com"]),
    ("example.com.", ["example.com", "www.example.com."]), ("*", ["example.com", "10.0.0.1"]),
    ("a.test,b.test", ["a.test", "b.test", "c.test"]), ("a.test, b.test", ["b.test"]),
    (",,a.test,,b.test,,", ["a.test", "b.test", "c.test"]), ("\ta.test\t,\tb.test\t", ["a.test", "b.test"]),
    ("EXAMPLE.com", ["example.com", "WWW.example.COM"]), ("com", ["example.com", "com", "xcom"]),
    (".", ["example.com"]),
    ("*,b.test", ["a.test", "b.test"]), ("ample.com", ["example.com"]), ("www.example.com", ["example.com"]),
    ("10.1.2.3", ["10.1.2.3", "10.1.2.30", "10.1.2.4"]), ("10.0.0.0/8", ["10.1.2.3", "11.1.2.3", "10.example.com"]),
    ("192.168.4.0/23", ["192.168.4.1", "192.168.5.255", "192.168.6.0"]),
    ("192.168.4.1/32", ["192.168.4.1", "192.168.4.2"]),
    ("10.0.0.0/33", ["10.0.0.0"]), ("128.0.0.0/1", ["192.0.2.1", "10.0.0.1"]), ("0.1", ["10.0.0.1"]),
    ("2001:db8::1", ["[2001:db8::1]", "[2001:db8:0:0::1]", "[2001:db8::2]"]),
    ("fe80::/10,10.0.0.0/8", ["10.9.8.7", "11.9.8.7"]), ("2001:db8::/129", ["[2001:db8::]"]),
    ("a_b.test", ["a_b.test", "x.a_b.test"]), ("example.com/24", ["example.com"]),
  ]

  @Test("Decisions are those of curl, for each value and host", arguments: table.indices)
  func curl(_ row: Int) async throws {
    let (value, hosts) = Self.table[row]
    for host in hosts {
      let list = try NoProxyList(value, of: "no_proxy")
      let isDirect = list.contains(HostAddress(host), port: 1)
      // Nothing listens at the two ports, so curl ends at once and has said which way it would go.
      let run = try await ChildProcess.run(
        Places.tool("curl"), ["-q", "-sv", "--connect-to", "::127.0.0.1:1", "http://\(host):1/"],
        environment: ["http_proxy": "http://127.0.0.1:2", "no_proxy": value])
      let usesProxy = run.errors.contains { $0.contains("Uses proxy env variable http_proxy") }
      #expect(isDirect == !usesProxy, "no_proxy=\(value) \(host): curl \(usesProxy ? "asks the proxy" : "does not")")
    }
  }

  /// What curl ignores, and other readers of the variable do not. Of IPv6 ranges, which its manual names, curl 7.88
  /// compares the text.
  @Test(
    "An entry may have a port, brackets, or an asterisk for the names below a domain, and zero bits are every address",
    arguments: [
      ("example.com:8443", "example.com", UInt16(8443), true), ("example.com:8443", "example.com", 443, false),
      ("example.com:8443", "www.example.com", 8443, true), ("10.0.0.1:80", "10.0.0.1", 80, true),
      ("10.0.0.1:80", "10.0.0.1", 81, false), ("[2001:db8::1]", "2001:db8::1", 443, true),
      ("2001:db8::/32", "[2001:db8:1::1]", 443, true), ("2001:db8::/32", "2001:db9::1", 443, false),
      ("2001:db8::/33", "2001:db8::1", 443, true), ("2001:db8::/33", "2001:db8:8000::1", 443, false),
      ("fe80::/10", "fe80::1%25eth0", 443, true), ("fe80::/10", "fec0::1", 443, false),
      ("[2001:db8::1]:443", "[2001:db8::1]", 443, true), ("[2001:db8::1]:443", "2001:db8::1", 444, false),
      ("*.example.com", "www.example.com", 443, true), ("*.example.com", "example.com", 443, false),
      ("*.example.com", "notexample.com", 443, false), ("0.0.0.0/0", "192.0.2.1", 443, true),
      ("0.0.0.0/0", "2001:db8::1", 443, false), ("::/0", "2001:db8::1", 443, true), ("10.0.0.1", "0xa.1", 443, true),
      ("a.test b.test", "b.test", 443, true), ("example.com:0", "example.com", 443, false),
      ("example.com:x", "example.com", 443, false),
      ("10.0.0.0/", "10.0.0.0", 443, false), ("10.0.0.0/8x", "10.0.0.0", 443, false), ("a:b:c", "a", 443, false),
      ("10.0.0.0/99999999999999999999", "10.0.0.0", 443, false),
    ])
  func tolerances(_ value: String, _ host: String, _ port: UInt16, _ expected: Bool) throws {
    #expect(try NoProxyList(value, of: "no_proxy").contains(HostAddress(host), port: port) == expected)
  }
}
