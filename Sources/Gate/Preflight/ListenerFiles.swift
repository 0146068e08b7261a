internal import Cryptography
public import Settings
public import TransportEngine

/// The files that the public listener is made of: the one place that says which of them a gate starts with.
public struct ListenerFiles: Sendable {
  private let settings: GateSettings

  public init(of settings: GateSettings) { self.settings = settings }

  /// The certificates and the rules of the public listener.
  public func load() throws(StartFault) -> ServerTLS {
    if let fault = (pairs.flatMap(\.faults) + authorityFaults).first { throw fault }
    let tls = settings.tls
    do throws(ServerTLS.Fault) {
      return try ServerTLS(
        .init(certificateFile: tls.certificateFile, keyFile: tls.keyFile),
        further: tls.further.map { .init(certificateFile: $0.certificateFile, keyFile: $0.keyFile) },
        minimumVersion: tls.leastVersion == .v1_2 ? .tls12 : .tls13,
        clientAuthorityFile: settings.debugMTLS?.clientCAFile)
    } catch {
      throw StartFault("tls", error.description, hint: Pair.hint("cert_file", "key_file"))
    }
  }

  /// The server's certificates with their keys.
  var pairs: [Pair] {
    [Pair("tls", settings.tls.certificateFile, settings.tls.keyFile, isFurther: false)]
      + settings.tls.further.enumerated().map { index, further in
        Pair("tls.certificates[\(index)]", further.certificateFile, further.keyFile, isFurther: true)
      }
  }

  /// A certificate with its key, and where the configuration names them.
  struct Pair {
    let certificateKey: String
    let certificateFile: String
    let keyKey: String
    let keyFile: String
    /// Whether only clients get it that ask for a name of its own.
    private let isFurther: Bool

    fileprivate init(_ place: String, _ certificateFile: String, _ keyFile: String, isFurther: Bool) {
      (certificateKey, keyKey) = ("\(place).cert_file", "\(place).key_file")
      (self.certificateFile, self.keyFile, self.isFurther) = (certificateFile, keyFile, isFurther)
    }

    fileprivate static func hint(_ certificate: String, _ key: String) -> String {
      "\(certificate) is the PEM chain, leaf first; \(key) its unencrypted PEM key"
    }

    var faults: [StartFault] {
      // Settings have been checked for it, but a certificate that is renewed comes without them.
      if let permissions = FileContent.permissions(of: keyFile), permissions & 0o004 != 0 {
        return [
          StartFault(keyKey, "every user of this machine can read \(keyFile)", hint: "chmod 600 \(keyFile)")
        ]
      }
      do throws(ServerTLS.Fault) {
        _ = try ServerTLS(.init(certificateFile: certificateFile, keyFile: keyFile))
      } catch {
        let key = error.file == keyFile ? keyKey : certificateKey
        return [StartFault(key, error.description, hint: Self.hint(certificateKey, keyKey))]
      }
      return [nameFault].compactMap(\.self)
    }

    /// Clients ask for names of DNS: a further certificate without one is never chosen.
    private var nameFault: StartFault? {
      guard isFurther, let leaf = try? ListenerFiles.certificates(in: certificateFile).first, leaf.dnsNames.isEmpty
      else { return nil }
      return StartFault(
        certificateKey, "\(leaf.subject) has no DNS name (subjectAltName): no client would ever get it",
        hint: "issue it with the names that clients ask for, or name it in tls.cert_file, for clients of any name")
    }
  }

  /// What is wrong with the authorities of clients' certificates.
  var authorityFaults: [StartFault] {
    guard let file = settings.debugMTLS?.clientCAFile else { return [] }
    let key = "debug_mtls.client_ca_file"
    let authorities: [Certificate]
    do {
      authorities = try Self.certificates(in: file)
    } catch let fault as FileFault {
      return [StartFault(key, "\(file): \(fault.reason)", hint: "name a file that the gate's user may read")]
    } catch {
      return [StartFault(key, "\(file): \(error)", hint: "name a PEM file of certificates")]
    }
    return authorities.compactMap { certificate in
      if !certificate.isAuthority {
        return StartFault(
          key, "\(certificate.subject) is no authority: nothing that it issued is accepted",
          hint: "name the authority's certificate, not a client's; `sallyport ca init` makes one")
      }
      // Chains end with a certificate that issued itself, or they are not verified.
      guard !authorities.contains(where: { certificate.issuanceFault(by: $0) == nil }) else { return nil }
      return StartFault(
        key,
        "\(certificate.subject) is an intermediate authority, and its issuer is not in the file: nothing is accepted",
        hint: "add the certificates above it, up to the one that issued itself; or name an authority of your own")
    }
  }

  private static func certificates(in file: String) throws -> [Certificate] {
    try Certificate.certificates(pem: String(decoding: FileContent.read(file), as: UTF8.self))
  }
}
