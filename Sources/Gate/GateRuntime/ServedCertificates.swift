internal import ByteCoding
internal import Cryptography
internal import Logging
internal import Observability
internal import Settings
internal import TransportEngine

/// The certificates of a listener, as they were loaded. Clients get them until the next successful reload, even if
/// the files change.
struct ServedCertificates: Sendable {
  /// Named `server`, `server_2` and so on. `client_ca` is the first client CA to expire, if there are any.
  let certificates: [(name: String, certificate: Certificate)]
  /// Digests of the files at load time.
  let files: CertificateFiles

  /// Logs a warning for each certificate that clients refuse at `now`, and for each that ends soon.
  func warn(_ logger: Logger, at now: Timestamp) {
    for (name, certificate) in certificates
    where CertificateNotice.endsSoon(certificate, at: now) || now < certificate.notBefore {
      var metadata: Logger.Metadata = [
        "certificate": "\(name)", "not_before": "\(certificate.notBefore)", "not_after": "\(certificate.notAfter)",
      ]
      if now < certificate.notBefore || certificate.notAfter < now {
        logger.warning("certificate expired or not yet valid: clients cannot connect", metadata: metadata)
      } else {
        metadata["days_left"] = .number(certificate.notAfter.since(now).components.seconds / 86_400)
        logger.warning("certificate ends soon: renew it", metadata: metadata)
      }
    }
  }

  /// The first certificate to end of those that end soon, as text for `/readyz`; `nil` if none does.
  func notice(at now: Timestamp) -> String? {
    let ending = certificates.filter { CertificateNotice.endsSoon($0.certificate, at: now) }
    guard let first = ending.min(by: { $0.certificate.notAfter < $1.certificate.notAfter }) else { return nil }
    let end = first.certificate.notAfter
    return "\(first.name) \(end < now ? "ended" : "ends") at \(end)"
  }
}

extension ServedCertificates {
  /// - Parameter files: the state of the files just before `tls` was loaded from them.
  init(_ tls: ServerTLS, from files: CertificateFiles) {
    var certificates = tls.certificates.enumerated().compactMap { index, der in
      (try? Certificate(der: der)).map { (CertificateFiles.serverName(index), $0) }
    }
    let authorities = tls.authorityCertificates.compactMap { try? Certificate(der: $0) }
    if let first = authorities.min(by: { $0.notAfter < $1.notAfter }) {
      certificates.append((CertificateFiles.authorityName, first))
    }
    self.init(certificates: certificates, files: files)
  }
}

/// A snapshot of the files that TLS uses, for comparison.
struct CertificateFiles: Sendable, Hashable {
  static let authorityName = "client_ca"
  static func serverName(_ index: Int) -> String { index == 0 ? "server" : "server_\(index + 1)" }

  /// Digests of each certificate's files, by its name; `nil` for a file that cannot be read.
  private var digests: [String: [[UInt8]?]] = [:]

  private init() {}

  /// Stands for files that could not be read in time. Differs from every snapshot that was read.
  static let unreadable = CertificateFiles()

  /// Reads the certificates, keys and client CA of `settings`, some kilobytes, lists of revoked certificates
  /// some megabytes. Contents are compared because
  /// modification times are unreliable when a whole folder is replaced.
  init(of settings: GateSettings) {
    for (index, files) in settings.tls.files.enumerated() {
      digests[Self.serverName(index)] = [FileDigest.of(files.certificateFile), FileDigest.of(files.keyFile)]
    }
    if let mtls = settings.debugMTLS {
      let lists = mtls.revocationListFile.map { [FileDigest.of($0, limit: RevocationList.maximumSize)] } ?? []
      digests[Self.authorityName] = [FileDigest.of(mtls.clientCAFile)] + lists
    }
  }

  /// The names of the certificates whose files differ in `other`.
  func names(differingFrom other: CertificateFiles) -> Set<String> {
    Set(Set(digests.keys).union(other.digests.keys).filter { digests[$0] != other.digests[$0] })
  }
}
