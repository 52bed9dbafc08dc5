/** Signing and verifying as a test says it: for call control, which knows them by a port alone. */
import type {
  CallToSign,
  CallToVerify,
  SignedCall,
  StirPort,
  VerifiedCall,
} from '../../schema/contracts/stir.ts'

export class ScriptedStir implements StirPort {
  readonly toSign: CallToSign[] = []
  readonly toVerify: CallToVerify[] = []
  /** A test may change the answers at any time. */
  readonly answers = {
    canSign: true,
    sign: (_call: CallToSign): SignedCall | Promise<SignedCall> => this.signature(),
    verify: (_call: CallToVerify): VerifiedCall | Promise<VerifiedCall> => passed(),
  }

  /** Each one is another: `sig-1`, `sig-2` … */
  signature(): SignedCall {
    return { kind: 'signed', identities: [`sig-${this.toSign.length};info=<https://us.example>`] }
  }

  canSign(): boolean {
    return this.answers.canSign
  }

  sign(call: CallToSign): SignedCall | Promise<SignedCall> {
    this.toSign.push(call)
    return this.answers.sign(call)
  }

  verify(call: CallToVerify): VerifiedCall | Promise<VerifiedCall> {
    this.toVerify.push(call)
    return this.answers.verify(call)
  }

  telemetry(): Readonly<Record<string, number>> {
    return { stir_certificates: 1 }
  }
}

export const passed = (attestation: 'A' | 'B' | 'C' | null = 'A'): VerifiedCall => ({
  verification: 'passed',
  attestation,
  origid: null,
  signer: 'CN=North',
})

export const failed = (
  status: 403 | 428 | 436 | 437 | 438,
  reason: string,
  why = 'the signature is wrong',
): VerifiedCall => ({ verification: 'failed', status, reason, why })
