internal import ConfigurationEngine
internal import Cryptography
public import Settings
public import TransportEngine

/// The files of the public listener. This type alone decides whether a gate can start with them.
public struct ListenerFiles: Sendable {
  private let settings: GateSettings

  public init(of settings: GateSettings) { self.settings = settings }

  /// Loads the certificates and TLS settings of the public listener.
  ///
  /// - Parameters:
  ///   - managed: The certificates that the gate obtained by itself, if `tls.acme` is set; none before the first.
  ///   - challenges: Answers the challenges of the ACME server, if `tls.acme` is set.
  /// - Throws: `StartError` for the first fault.
  public func load(
    _ managed: [CertificateMaterial] = [], challenges: ChallengeResponder = ChallengeResponder()
  ) throws(StartError) -> ServerTLS {
    if let fault = (pairs.flatMap(\.faults) + authorityFaults + revocationFaults).first { throw fault }
    let tls = settings.tls
    let minimumVersion: ServerTLS.MinimumVersion = tls.leastVersion == .v1_2 ? .tls12 : .tls13
    let clientAuthorityFile = settings.debugMTLS?.clientCAFile
    let trustsIntermediates = settings.debugMTLS?.acceptsPartialChains == true
    let revocationListFile = settings.debugMTLS?.revocationListFile
    do throws(ServerTLS.SetupError) {
      switch tls.source {
      case .acme:
        return try ServerTLS(
          managed, challenges: challenges, minimumVersion: minimumVersion, clientAuthorityFile: clientAuthorityFile,
          trustsIntermediates: trustsIntermediates, revocationListFile: revocationListFile)
      case .files(let first, let further):
        return try ServerTLS(
          .init(first), further: further.map(ServerTLS.CertificateFiles.init), minimumVersion: minimumVersion,
          clientAuthorityFile: clientAuthorityFile, trustsIntermediates: trustsIntermediates,
          revocationListFile: revocationListFile)
      }
    } catch {
      throw StartError("tls", error.description, hint: Pair.hint("cert_file", "key_file"))
    }
  }

  /// The server certificates with their keys.
  var pairs: [Pair] {
    settings.tls.files.enumerated().map { index, files in
      let place = index == 0 ? "tls" : "tls.certificates[\(index - 1)]"
      return Pair(place, files.certificateFile, files.keyFile, isFurther: index > 0)
    }
  }

  /// A certificate and its key, with the settings keys that name them.
  struct Pair {
    let certificateKey: String
    let certificateFile: String
    let keyKey: String
    let keyFile: String
    /// Whether only clients that request one of its names (SNI) get the certificate.
    private let isFurther: Bool

    fileprivate init(_ place: String, _ certificateFile: String, _ keyFile: String, isFurther: Bool) {
      (certificateKey, keyKey) = ("\(place).cert_file", "\(place).key_file")
      (self.certificateFile, self.keyFile, self.isFurther) = (certificateFile, keyFile, isFurther)
    }

    fileprivate static func hint(_ certificate: String, _ key: String) -> String {
      "\(certificate) must be the PEM chain, leaf first, and \(key) its unencrypted PEM key"
    }

    var faults: [StartError] {
      // The settings were checked for this at load time, but a renewed key file was not.
      if let permissions = FileContent.permissions(of: keyFile), permissions & 0o004 != 0 {
        return [
          StartError(keyKey, "every user of this machine can read \(keyFile)", hint: "run chmod 600 \(keyFile)")
        ]
      }
      do throws(ServerTLS.SetupError) {
        _ = try ServerTLS(.init(certificateFile: certificateFile, keyFile: keyFile))
      } catch {
        let key = error.file == keyFile ? keyKey : certificateKey
        return [StartError(key, error.description, hint: Self.hint(certificateKey, keyKey))]
      }
      return [nameFault].compactMap(\.self)
    }

    /// SNI carries DNS names, so an additional certificate without one is never selected.
    private var nameFault: StartError? {
      guard isFurther, let leaf = try? ListenerFiles.certificates(in: certificateFile).first, leaf.dnsNames.isEmpty
      else { return nil }
      return StartError(
        certificateKey, "\(leaf.subject) has no DNS name (subjectAltName): it would never be selected",
        hint:
          "issue it with the names that clients request, or use it as tls.cert_file, the default certificate"
      )
    }
  }

  /// The faults of the client CA file.
  var authorityFaults: [StartError] {
    guard let mtls = settings.debugMTLS else { return [] }
    let file = mtls.clientCAFile
    let key = "debug_mtls.client_ca_file"
    let authorities: [Certificate]
    do {
      authorities = try Self.certificates(in: file)
    } catch let fault as FileContentError {
      return [StartError(key, "\(file): \(fault.reason)", hint: "name a file that the gate's user can read")]
    } catch {
      return [StartError(key, "\(file): \(error)", hint: "set it to a PEM file of certificates")]
    }
    return authorities.compactMap { certificate in
      if !certificate.isAuthority {
        return StartError(
          key, "\(certificate.subject) is not a CA certificate: client certificates that it issued are refused",
          hint: "set it to the CA's certificate, not a client's; `sallyport ca init` creates a CA")
      }
      // Otherwise a chain is verified only up to a self-signed certificate.
      guard !mtls.acceptsPartialChains, !authorities.contains(where: { certificate.issuanceFault(by: $0) == nil })
      else { return nil }
      return StartError(
        key,
        "\(certificate.subject) is an intermediate CA and its issuer is not in the file: all certificates are refused",
        hint: "add its issuers up to the self-signed root, or trust it alone with debug_mtls.partial_chain: true")
    }
  }

  /// The faults of the lists of revoked client certificates: each authority needs one that it signed.
  var revocationFaults: [StartError] {
    guard let mtls = settings.debugMTLS, let file = mtls.revocationListFile else { return [] }
    let key = "debug_mtls.crl_file"
    let lists: [RevocationList]
    do throws(ServerTLS.SetupError) {
      lists = try RevocationList.read(file)
    } catch {
      return [StartError(key, error.description, hint: "set it to a PEM file of lists: openssl ca -gencrl")]
    }
    guard let authorities = try? Self.certificates(in: mtls.clientCAFile) else { return [] }
    return authorities.compactMap { authority in
      guard !lists.contains(where: { $0.isSigned(by: authority.der) }) else { return nil }
      return StartError(
        key, "\(file) has no list that \(authority.subject) signed: all of its certificates are refused",
        hint: "add the list of each CA in debug_mtls.client_ca_file to the file")
    }
  }

  private static func certificates(in file: String) throws -> [Certificate] {
    try Certificate.certificates(pem: String(decoding: FileContent.read(file), as: UTF8.self))
  }
}

extension ServerTLS.CertificateFiles {
  fileprivate init(_ files: GateSettings.TLS.Files) {
    self.init(certificateFile: files.certificateFile, keyFile: files.keyFile)
  }
}
