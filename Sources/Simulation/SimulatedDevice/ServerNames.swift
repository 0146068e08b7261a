internal import Cryptography

/// The names and addresses under which clients reach a development gate.
public struct ServerNames: Sendable, Hashable {
  /// DNS names.
  public var hosts: [String]
  /// IPv4 addresses of 4 bytes and IPv6 addresses of 16.
  public var addresses: [[UInt8]]

  /// Creates a list. The names of loopback need not be in it.
  public init(hosts: [String] = [], addresses: [[UInt8]] = []) {
    self.hosts = hosts
    self.addresses = addresses
  }

  /// `localhost`, `127.0.0.1` and `::1`.
  public static let loopback = ServerNames(
    hosts: ["localhost"], addresses: [[127, 0, 0, 1], [UInt8](repeating: 0, count: 15) + [1]])

  /// These names after those of `others`, each once.
  func adding(to others: ServerNames) -> ServerNames {
    ServerNames(
      hosts: others.hosts + hosts.filter { !others.hosts.contains($0) },
      addresses: others.addresses + addresses.filter { !others.addresses.contains($0) })
  }

  /// Whether `certificate` is for all of them.
  func areCovered(by certificate: Certificate) -> Bool {
    Set(hosts).isSubset(of: certificate.dnsNames) && Set(addresses).isSubset(of: certificate.ipAddresses)
  }
}
