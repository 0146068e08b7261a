public import Logging
public import MFADomain

extension OperationRegistry {
  /// Every operation that the backend has.
  public init(_ premises: Premises, logger: Logger, paces: PaceLimits = PaceLimits()) {
    self.init(
      EnrolmentController(enrolment: Enrolment(premises)).operations
        + AuthenticationController(
          authentication: Authentication(premises), codes: TextedCodes(premises)
        ).operations
        + DirectoryController(directory: Directory(premises)).operations,
      clock: premises.clock, logger: logger, paces: paces)
  }
}
