public import Logging
public import MFADomain

extension OperationRegistry {
  /// Every operation that the backend has.
  public init(
    _ premises: Premises, logger: Logger, paces: PaceLimits = PaceLimits(), patience: Duration = Self.patience
  ) {
    self.init(
      EnrolmentController(enrolment: Enrolment(premises), linking: Linking(premises)).operations
        + AuthenticationController(
          authentication: Authentication(premises), codes: TextedCodes(premises)
        ).operations
        + DirectoryController(directory: Directory(premises)).operations
        + SecondFactorController(
          secondFactor: SecondFactor(premises), codes: MailedCodes(premises), trust: Trust(premises)
        ).operations
        + AuthenticatorController(authenticator: Authenticator(premises), codes: MailedCodes(premises)).operations
        + SecurityKeyController(keys: SecurityKeys(premises), proof: SecurityKeyProof(premises)).operations
        + SessionController(sessions: Sessions(premises)).operations
        + PushController(approval: PushApproval(premises)).operations
        + NoticeController(notices: Notices(premises)).operations
        + RecoveryController(
          recovery: AccountRecovery(premises), administration: Administration(premises)
        ).operations
        + AdministrationController(administration: Administration(premises)).operations,
      premises: premises, logger: logger, paces: paces, patience: patience)
  }
}
