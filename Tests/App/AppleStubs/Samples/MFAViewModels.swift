import MFAClient
import MFAViewModels

let keychain: any KeychainService = SecurityKeychainService()
let biometrics: any BiometricService = LocalAuthenticationService()
let network: any MFABackend = { fatalError() }()
let storage: any MFAStorageService = DefaultsStorageService()
let description: AppDescription = { fatalError() }()

func render(_ state: EnrollmentState) {}
