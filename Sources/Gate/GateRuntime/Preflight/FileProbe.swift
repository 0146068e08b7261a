internal import AttestGate
internal import ByteCoding
internal import ConfigurationEngine
internal import Cryptography
internal import Glibc
internal import Settings
internal import TransportEngine

/// Checks the contents of the configured files.
struct FileProbe {
  let settings: GateSettings
  let instant: Timestamp

  func run() -> [ProbeResult] {
    var report = ProbeReport(settings)
    let listener = ListenerFiles(of: settings)
    for pair in listener.pairs { probe(pair, &report) }
    if let mtls = settings.debugMTLS { probeClientAuthority(mtls.clientCAFile, listener.authorityFaults, &report) }
    probeRevocationLists(listener, &report)
    let trust = settings.appAttest.trust
    for (key, file) in [
      ("app_attest.trust.attestation_root_file", trust.attestationRootFile),
      ("app_attest.trust.receipt_root_file", trust.receiptRootFile),
    ] {
      guard let file, let roots = certificates(in: file, for: key, &report) else { continue }
      if judgeTimes(of: roots, as: key, &report) { report.pass(key, Self.summary(of: roots)) }
    }
    if let file = settings.appAttest.challengeKeysFile { probeChallengeKeys(file, &report) }
    return report.results
  }

  // MARK: The server's certificate

  private func probe(_ pair: ListenerFiles.Pair, _ report: inout ProbeReport) {
    let faults = pair.faults
    for fault in faults { report.fail(fault) }
    if !faults.contains(where: { $0.key == pair.keyKey || $0.reason.hasPrefix(pair.certificateFile) }) {
      probePermissions(of: pair.keyFile, as: pair.keyKey, &report)
    }
    let key = pair.certificateKey
    guard let chain = certificates(in: pair.certificateFile, for: key, &report) else { return }
    let isInTime = judgeTimes(of: chain, as: key, &report)
    if isInOrder(chain, as: key, &report), isInTime, faults.isEmpty { report.pass(key, Self.summary(of: chain)) }
  }

  private func isInOrder(_ chain: [Certificate], as key: String, _ report: inout ProbeReport) -> Bool {
    for (number, (subject, issuer)) in zip(chain, chain.dropFirst()).enumerated() {
      guard let fault = subject.issuanceFault(by: issuer) else { continue }
      report.fail(
        key,
        "certificate \(number + 2) (\(issuer.subject)) did not issue number \(number + 1) "
          + "(\(subject.subject)): \(fault)",
        hint: "order the chain: the server's certificate first, then each issuer's certificate")
      return false
    }
    return true
  }

  private func probePermissions(of file: String, as key: String, _ report: inout ProbeReport) {
    var status = stat()
    guard stat(file, &status) == 0 else { return }
    let mode = "0" + String(status.st_mode & 0o777, radix: 8)
    if status.st_mode & 0o022 != 0 {
      report.warn(key, "users other than the owner can write \(file) (mode \(mode))", hint: "run chmod 600 \(file)")
    } else if status.st_uid != 0 && status.st_uid != geteuid() {
      report.warn(key, "\(file) is owned by user \(status.st_uid), not by root or this user")
    } else {
      report.pass(key, "matches the certificate (mode \(mode))")
    }
  }

  // MARK: Other files

  private func probeClientAuthority(_ file: String, _ faults: [StartError], _ report: inout ProbeReport) {
    for fault in faults { report.fail(fault) }
    let key = "debug_mtls.client_ca_file"
    guard let authorities = certificates(in: file, for: key, &report) else { return }
    if judgeTimes(of: authorities, as: key, &report), faults.isEmpty {
      report.pass(key, Self.summary(of: authorities))
    }
  }

  private func probeRevocationLists(_ listener: ListenerFiles, _ report: inout ProbeReport) {
    guard let file = settings.debugMTLS?.revocationListFile else { return }
    let key = "debug_mtls.crl_file"
    let faults = listener.revocationFaults
    for fault in faults { report.fail(fault) }
    guard faults.isEmpty, let lists = try? RevocationList.read(file) else { return }
    // One valid list of an authority is enough: an older one next to it does no harm.
    let valid = Set(lists.filter { $0.validity?.contains(instant) == true }.map(\.issuer))
    let others = lists.filter { !valid.contains($0.issuer) }
    let late = others.filter { list in list.nextUpdate.map { $0 <= instant } == true }
    for list in late {
      report.fail(
        key,
        "the next list of \(list.issuer) was due \(list.nextUpdate.map { "\($0)" } ?? ""): its certificates are refused",
        hint: "fetch the CA's current list, or make one: openssl ca -gencrl")
    }
    let early = others.filter { list in list.thisUpdate.map { $0 > instant } == true }
    for list in early {
      report.fail(
        key,
        "the list of \(list.issuer) begins at \(list.thisUpdate.map { "\($0)" } ?? ""): until then its certificates "
          + "are refused", hint: "compare the clocks of this machine and of the CA's")
    }
    if late.isEmpty, early.isEmpty {
      let ends = Set(lists.map(\.issuer)).compactMap { issuer in
        lists.filter { $0.issuer == issuer }.compactMap(\.validity).map(\.upperBound).max()
      }
      let next = ends.filter { $0.seconds < .max }.min()
      let revoked = lists.reduce(0) { $0 + $1.count }
      report.pass(
        key,
        "\(revoked) revoked certificate\(revoked == 1 ? "" : "s")" + (next.map { ", valid until \($0)" } ?? ""))
    }
  }

  private func probeChallengeKeys(_ file: String, _ report: inout ProbeReport) {
    let key = "app_attest.challenge_keys_file"
    guard let bytes = content(of: file, for: key, &report) else { return }
    do throws(ChallengeKeyRing.FileError) {
      let ring = try ChallengeKeyRing(text: String(decoding: bytes, as: UTF8.self))
      report.pass(key, "\(file) contains \(ring.keys.count) keys")
    } catch {
      report.fail(
        key, "\(file): \(error)",
        hint: "one key per line: a number from 0 to 255 and 64 hex digits (openssl rand -hex 32)")
    }
  }
}

// MARK: - Certificates

extension FileProbe {
  private func certificates(in file: String, for key: String, _ report: inout ProbeReport) -> [Certificate]? {
    guard let bytes = content(of: file, for: key, &report) else { return nil }
    do throws(CryptographyError) {
      return try Certificate.certificates(pem: String(decoding: bytes, as: UTF8.self))
    } catch {
      // Avoids a second report about the same file.
      if !report.results.contains(where: { $0.key == key && $0.outcome == .failed }) {
        report.fail(key, "\(file): \(error)", hint: "set it to a PEM file of certificates")
      }
      return nil
    }
  }

  private func content(of file: String, for key: String, _ report: inout ProbeReport) -> [UInt8]? {
    do throws(FileContentError) {
      return try FileContent.read(file)
    } catch {
      // Avoids a second report: the gate's own start checks have already found this fault.
      if !report.results.contains(where: { $0.key == key && $0.outcome == .failed }) {
        report.fail(key, "\(file): \(error.reason)", hint: "name a file that the gate's user can read")
      }
      return nil
    }
  }

  /// Whether all of `certificates` are valid now and for some time.
  private func judgeTimes(of certificates: [Certificate], as key: String, _ report: inout ProbeReport) -> Bool {
    var areGood = true
    for certificate in certificates {
      let name = certificate.subject
      if instant < certificate.notBefore {
        report.fail(
          key, "\(name) is not valid before \(certificate.notBefore)", hint: "check the clock of this machine")
      } else if instant > certificate.notAfter {
        report.fail(key, "\(name) expired on \(certificate.notAfter)", hint: "renew the certificate")
      } else if CertificateNotice.endsSoon(certificate, at: instant) {
        let days = certificate.notAfter.since(instant).components.seconds / 86400
        report.warn(
          key, "\(name) expires in \(days) days, on \(certificate.notAfter)", hint: "renew the certificate")
      } else {
        continue
      }
      areGood = false
    }
    return areGood
  }

  private static func summary(of certificates: [Certificate]) -> String {
    let names = certificates.prefix(1).map(\.subject).joined()
    let others = certificates.count > 1 ? " and \(certificates.count - 1) more" : ""
    let end = certificates.map(\.notAfter).min().map { ", valid until \($0)" } ?? ""
    return "\(names)\(others)\(end)"
  }
}
