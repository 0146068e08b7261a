public import ByteCoding

/// Why a certificate was not obtained.
public enum ACMEError: Error, Sendable, Hashable {
  /// The server cannot be reached, or did not answer in time.
  case unreachable(server: String, reason: String)
  /// The certificate of the server is not trusted.
  case untrusted(server: String, reason: String)
  /// The configured URL is not that of a directory.
  case noDirectory(url: String, reason: String)
  /// Another answer does not follow RFC 8555.
  case malformed(url: String, reason: String)
  /// The server refused a request.
  case refused(step: Step, Problem)
  /// The server accepts no more requests until an instant; `nil` if it does not say when.
  case rateLimited(Problem, until: Timestamp?)
  /// The server could not validate `name`.
  case notValidated(name: String, by: ChallengeKind, Problem)
  /// The server does not offer the kind of challenge for `name`.
  case noChallenge(name: String, ChallengeKind, offered: [String])
  /// The TXT record `name` of a challenge was not written or removed.
  case record(name: String, reason: String)
  /// The server does not offer the profile `name` (draft-ietf-acme-profiles).
  case unknownProfile(name: String, offered: [String])
  /// The server makes accounts only for its customers.
  case bindingRequired
  /// The server did not finish in time.
  case unfinished(step: Step)
  /// The certificate is not the one that was ordered.
  case unusable(reason: String)
  /// The certificate is not valid at the time of this machine.
  case clock(notBefore: Timestamp, notAfter: Timestamp)
  /// The account, the certificate or its key cannot be read or written.
  case storage(reason: String)

  /// The part of an order that failed.
  public enum Step: String, Sendable, Hashable, CaseIterable {
    case account, order, authorization, challenge, finalization, certificate
    case renewalInformation = "renewal information"

    /// Whether the server decides by the account alone.
    fileprivate var isOfAccount: Bool { self == .account || self == .order }
  }

  /// One word for a metric's label: one of `codes`.
  public var code: String {
    switch self {
    case .unreachable: OwnCode.unreachable.rawValue
    case .untrusted: OwnCode.untrusted.rawValue
    case .noDirectory, .malformed: "malformed"
    case .refused(_, let problem): problem.code
    case .rateLimited: "rateLimited"
    case .notValidated(_, _, let problem): problem.code
    case .noChallenge: OwnCode.noChallenge.rawValue
    case .record: OwnCode.record.rawValue
    case .unknownProfile: "invalidProfile"
    case .bindingRequired: "externalAccountRequired"
    case .unfinished: OwnCode.unfinished.rawValue
    case .unusable: OwnCode.unusable.rawValue
    case .clock: OwnCode.clock.rawValue
    case .storage: OwnCode.storage.rawValue
    }
  }

  /// The codes of failures that have none in RFC 8555.
  private enum OwnCode: String, CaseIterable {
    case unreachable, untrusted, noChallenge, record, unfinished, unusable, clock, storage
  }

  /// Every value of `code`.
  public static let codes = Problem.codes.union(OwnCode.allCases.map(\.rawValue)).union([Problem.unknown])
}

extension ACMEError: CustomStringConvertible {
  /// One line without control characters. Each part that comes from outside has at most 500 characters.
  public var description: String {
    switch self {
    case .unreachable(let server, let reason):
      "\(ServerText.bounded(server)) cannot be reached: \(ServerText.bounded(reason))"
    case .untrusted(let server, let reason):
      "\(ServerText.bounded(server)) is not trusted: \(ServerText.bounded(reason))"
    case .noDirectory(let url, let reason):
      "\(ServerText.bounded(url)) is not the directory of an ACME server: \(ServerText.bounded(reason))"
    case .malformed(let url, let reason):
      "\(ServerText.bounded(url)) is not an answer of an ACME server: \(ServerText.bounded(reason))"
    case .refused(let step, let problem): "the ACME server refused the \(step.rawValue): \(problem)"
    case .rateLimited(let problem, let until):
      "the ACME server accepts no more orders\(until.map { " until \($0)" } ?? " for now"): \(problem)"
    case .notValidated(let name, _, let problem):
      "the ACME server could not validate \(ServerText.bounded(name)): \(problem)"
    case .noChallenge(let name, let kind, let offered):
      "the ACME server does not offer \(kind.rawValue) for \(ServerText.bounded(name)): "
        + ServerText.bounded("it offers \(offered.isEmpty ? "nothing" : offered.joined(separator: ", "))")
    case .record(let name, let reason):
      "the TXT record \(ServerText.bounded(name)) was not changed: \(ServerText.bounded(reason))"
    case .unknownProfile(let name, let offered):
      "the ACME server does not offer the profile \(ServerText.bounded(name)): "
        + (offered.isEmpty ? "it has no profiles" : ServerText.bounded("it offers \(offered.joined(separator: ", "))"))
    case .bindingRequired: "the ACME server makes accounts only for its customers"
    case .unfinished(let step): "the ACME server did not finish the \(step.rawValue) in time"
    case .unusable(let reason): "the certificate of the ACME server cannot be used: \(ServerText.bounded(reason))"
    case .clock(let notBefore, let notAfter):
      "the new certificate, valid from \(notBefore) to \(notAfter), is not valid at the time of this machine"
    case .storage(let reason): "the certificate cannot be stored or read: \(ServerText.bounded(reason))"
    }
  }

  /// What an operator can do about it.
  public var hint: String {
    switch self {
    case .unreachable: "check tls.acme.directory, the name servers and the firewall of this machine"
    case .untrusted:
      "for a private ACME server set tls.acme.ca_file to its CA (PEM); otherwise check this machine's clock"
    case .noDirectory: "check tls.acme.directory: it is the URL of the server's directory"
    case .malformed:
      "report this to the operator of the ACME server, or find out what answers at this URL in its place; the gate "
        + "tries again"
    case .refused(let step, let problem) where step.isOfAccount && problem.code == "unauthorized":
      "the server does not accept the account: ask its operator; or, to register again, remove account.json, with "
        + "PostgreSQL the row acme/…/account.json of shared_documents"
    case .refused(_, let problem): Self.hint(for: problem.code)
    case .rateLimited: "nothing to do: the gate waits; more names in one certificate need fewer orders"
    case .notValidated(_, let kind, let problem): kind.hint(for: problem.code) ?? Self.hint(for: problem.code)
    case .noChallenge: "set tls.acme.challenge to one that it offers, or use another server"
    case .record: "run the program of tls.acme.dns.hook by hand, or check tls.acme.dns.server and its key_file"
    case .unknownProfile(_, let offered):
      offered.isEmpty ? "remove tls.acme.profile" : "correct tls.acme.profile, or remove it for the server's own choice"
    case .bindingRequired: "set tls.acme.eab.key_id and tls.acme.eab.key_file to the server's values for your account"
    case .unfinished:
      "the gate continues the order, and places another one after a day at most; if that is not finished either, ask "
        + "the operator of the ACME server"
    case .unusable: "report this to the operator of the ACME server"
    case .clock: "set the clock of this machine (timedatectl)"
    case .storage: "check the state folder and its permissions, or the store"
    }
  }

  /// RFC 8555 section 6.7.
  private static func hint(for code: String) -> String {
    switch code {
    case "caa": "allow the authority in the CAA record of the name, or remove the record"
    case "rejectedIdentifier", "unsupportedIdentifier":
      "the authority does not issue for this name: correct tls.acme.domains"
    case "invalidContact", "unsupportedContact": "correct tls.acme.email"
    case "externalAccountRequired":
      "set tls.acme.eab.key_id and tls.acme.eab.key_file to the server's values for your account"
    case "invalidProfile": "the authority does not accept the profile for these names: correct tls.acme.profile"
    case "userActionRequired": "agree to the terms of service at the server's page"
    case "badNonce": "check whether a proxy caches answers of the ACME server"
    default: "correct tls.acme as the server says; the gate tries again"
    }
  }
}

extension ChallengeKind {
  /// What an operator can do about a validation that failed with `code`; `nil` if the kind does not matter.
  fileprivate func hint(for code: String) -> String? {
    switch (self, code) {
    case (.tlsALPN, "connection"), (.tlsALPN, "tls"), (.tlsALPN, "unauthorized"), (.tlsALPN, "incorrectResponse"):
      "port 443 of the name must lead to this gate's listener, without TLS termination in between"
    case (.http, "connection"), (.http, "tls"), (.http, "unauthorized"), (.http, "incorrectResponse"):
      "port 80 of the name must lead to tls.acme.http_listen of this gate"
    case (.tlsALPN, "dns"), (.http, "dns"): "the name needs an A or AAAA record that leads to this gate"
    case (.dns, "dns"), (.dns, "unauthorized"), (.dns, "incorrectResponse"):
      "the server did not see the TXT record _acme-challenge of the name: set a longer tls.acme.dns.wait, and check "
        + "that the record is written to the zone that the world sees"
    default: nil
    }
  }
}
