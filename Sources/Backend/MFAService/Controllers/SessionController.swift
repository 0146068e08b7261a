internal import MFADomain
internal import MFAWire

/// The operations that refresh and revoke sessions.
struct SessionController {
  let sessions: Sessions

  var operations: [Operation] { [refresh, revoke] }

  private var refresh: Operation {
    Operation(
      MFAOperations.refreshToken, "Returns new tokens for a refresh token, which can be used once.",
      access: .attested, refusals: [.invalidRequest, .sessionRequired, .boundElsewhere, .accountLocked]
    ) { request, caller in
      var response = TokenResponse(try await sessions.refresh(request.refreshToken.checked("refreshToken"), by: caller))
      response.message = "Token refreshed"
      return response
    }
  }

  private var revoke: Operation {
    Operation(
      MFAOperations.revokeToken, "Revokes a session.", access: .attested,
      refusals: [.invalidRequest, .sessionRequired, .boundElsewhere]
    ) { request, caller in
      try await sessions.end(request.refreshToken.checked("refreshToken"), by: caller)
      return RevokeResponse(message: "Session revoked")
    }
  }
}
