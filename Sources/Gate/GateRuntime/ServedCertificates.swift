internal import ByteCoding
internal import Cryptography
internal import Logging
internal import Settings
internal import TransportEngine

/// The certificates that a listener serves, as they were read: whatever becomes of the files, these are what clients
/// get until the next reload succeeds.
struct ServedCertificates: Sendable {
  /// `server`, `server_2` and so on for further ones; `client_ca`, the first to end of the authorities, if there are
  /// any.
  let certificates: [(name: String, certificate: Certificate)]
  /// What the files held.
  let files: CertificateFiles

  /// - Parameter files: as they were just before `tls` was made of them.
  init(_ tls: ServerTLS, from files: CertificateFiles) {
    var certificates = tls.certificates.enumerated().compactMap { index, der in
      (try? Certificate(der: der)).map { (CertificateFiles.serverName(index), $0) }
    }
    let authorities = tls.authorityCertificates.compactMap { try? Certificate(der: $0) }
    if let first = authorities.min(by: { $0.notAfter < $1.notAfter }) {
      certificates.append((CertificateFiles.authorityName, first))
    }
    self.certificates = certificates
    self.files = files
  }

  /// Says which of them clients will refuse at `now`.
  func warn(_ logger: Logger, at now: Timestamp) {
    for (name, certificate) in certificates where now < certificate.notBefore || certificate.notAfter < now {
      logger.warning(
        "a certificate has ended, or has not begun: clients will not connect",
        metadata: [
          "certificate": "\(name)", "not_before": "\(certificate.notBefore)", "not_after": "\(certificate.notAfter)",
        ])
    }
  }
}

/// The files that TLS is set up from, as they are at a moment: to be compared.
struct CertificateFiles: Sendable, Hashable {
  static let authorityName = "client_ca"
  static func serverName(_ index: Int) -> String { index == 0 ? "server" : "server_\(index + 1)" }

  /// By the name of the certificate: digests of its files, `nil` for one that cannot be read.
  private var digests: [String: [[UInt8]?]] = [:]

  private init() {}

  /// Files that did not answer: different from all that can be read.
  static let unreadable = CertificateFiles()

  /// - Parameter settings: whose certificates, keys and client authority are read; some kilobytes. Their contents and
  ///   not their dates: those say nothing where a folder is swapped as a whole.
  init(of settings: GateSettings) {
    let tls = settings.tls
    let servers = [(tls.certificateFile, tls.keyFile)] + tls.further.map { ($0.certificateFile, $0.keyFile) }
    for (index, (certificate, key)) in servers.enumerated() {
      digests[Self.serverName(index)] = [FileDigest.of(certificate), FileDigest.of(key)]
    }
    if let authority = settings.debugMTLS?.clientCAFile { digests[Self.authorityName] = [FileDigest.of(authority)] }
  }

  /// The names of the certificates whose files hold something else here than in `other`.
  func names(differingFrom other: CertificateFiles) -> Set<String> {
    Set(Set(digests.keys).union(other.digests.keys).filter { digests[$0] != other.digests[$0] })
  }
}
