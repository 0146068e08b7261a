internal import ByteCoding
internal import Foundation
internal import MFADomain
internal import MFAWire

/// The operations on the authenticators of an account: adding further apps, and listing, renaming and removing them.
struct AuthenticatorAppController {
  let apps: AuthenticatorApps

  var operations: [Operation] { [offer, confirm, list, rename, remove] }

  private static let ofBearers: [RefusalCode] = [
    .invalidRequest, .sessionRequired, .secondFactorRequired, .boundElsewhere, .accountLocked,
  ]

  private var offer: Operation {
    Operation(
      MFAOperations.offerAuthenticator,
      "Creates a secret for a further authenticator app, which replaces an earlier offer to this session.",
      access: .session, refusals: Self.ofBearers + [.freshProofRequired, .notEnabled, .tooManyAuthenticators]
    ) { request, caller in
      let offer = try await apps.offer(
        try AppName(request.name), try TOTPParameters(algorithm: request.algorithm, digits: request.digits), by: caller)
      return AuthenticatorAppOffer(
        id: offer.id.text, secret: offer.secret, qrCodeURL: offer.uri, expiresAt: offer.expiresAt.wire)
    }
  }

  private var confirm: Operation {
    Operation(
      MFAOperations.confirmOfferedAuthenticator, "Adds the offered authenticator app, with a code of it.",
      access: .session, rateClass: .sensitive,
      refusals: Self.ofBearers + [
        .codeInvalid, .rateLimited, .notEnabled, .alreadyEnabled, .tooManyAuthenticators, .notFound,
      ]
    ) { request, caller in
      guard let id = UUID(text: request.id) else { throw InvalidValue(field: "id", rule: "must be a UUID") }
      return AuthenticatorEntry(try await apps.confirm(id, request.code, by: caller))
    }
  }

  private var list: Operation {
    Operation(
      MFAOperations.authenticators,
      "The authenticators of the caller's account: the first app, added apps, and tokens that operators have assigned.",
      access: .session, refusals: Self.ofBearers
    ) { _, caller in
      AuthenticatorList(authenticators: try await apps.list(for: caller).map { AuthenticatorEntry($0) })
    }
  }

  private var rename: Operation {
    Operation(
      MFAOperations.renameAuthenticator, "Renames an added authenticator app.", access: .session,
      refusals: Self.ofBearers + [.forbidden, .notFound]
    ) { request, caller in
      AuthenticatorEntry(try await apps.rename(AuthenticatorID(request.id), to: AppName(request.name), by: caller))
    }
  }

  private var remove: Operation {
    Operation(
      MFAOperations.removeAuthenticator, "Removes the first authenticator app or an added one, while another remains.",
      access: .session,
      refusals: Self.ofBearers + [.freshProofRequired, .forbidden, .notFound, .lastAuthenticator]
    ) { request, caller in
      try await apps.remove(AuthenticatorID(request.id), by: caller)
      return MessageResponse(message: "Authenticator removed")
    }
  }
}

extension AuthenticatorEntry {
  fileprivate init(_ entry: AuthenticatorApps.Entry) {
    self.init(
      id: entry.id.text, kind: entry.kind.rawValue, name: entry.name, createdAt: entry.createdAt.wire,
      lastUsedAt: entry.lastUsedAt?.wire)
  }
}
