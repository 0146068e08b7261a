public import Logging
public import MFADomain

extension OperationRegistry {
  /// Creates the registry of all operations of the backend, with rate limits of its own.
  public init(
    _ context: DomainContext, logger: Logger, rateLimits: RateLimits = RateLimits(), patience: Duration = Self.patience
  ) {
    self.init(
      context, logger: logger, rateLimiter: RateLimiter(limits: rateLimits, clock: context.clock), patience: patience)
  }

  /// Creates the registry of all operations of the backend.
  ///
  /// - Parameter rateLimiter: counts the requests, across the registries that share it.
  public init(
    _ context: DomainContext, logger: Logger, rateLimiter: RateLimiter, patience: Duration = Self.patience
  ) {
    self.init(
      EnrolmentController(enrolment: Enrolment(context), linking: Linking(context)).operations
        + AuthenticationController(
          authentication: Authentication(context), codes: SMSCodes(context)
        ).operations
        + FederationController(federation: Federation(context)).operations
        + DirectoryController(directory: Directory(context)).operations
        + SecondFactorController(
          secondFactor: SecondFactor(context), codes: EmailCodes(context), trust: Trust(context)
        ).operations
        + AuthenticatorController(authenticator: Authenticator(context), codes: EmailCodes(context)).operations
        + AuthenticatorAppController(apps: AuthenticatorApps(context)).operations
        + SecurityKeyController(keys: SecurityKeys(context), proof: SecurityKeyProof(context)).operations
        + SessionController(sessions: Sessions(context)).operations
        + PushController(approval: PushApproval(context), addresses: PushAddresses(context)).operations
        + NoticeController(notices: Notices(context)).operations
        + RecoveryController(
          recovery: AccountRecovery(context), administration: Administration(context)
        ).operations
        + AdministrationController(administration: Administration(context)).operations,
      context: context, logger: logger, rateLimiter: rateLimiter, patience: patience)
  }
}
