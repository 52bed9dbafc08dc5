/** Proof of the caller of a carrier's call, as plain values. */
import type { Attestation } from '../../../schema/contracts/caller-identity.ts'
import type { Verification, VerificationStatus, Verstat } from '../../../schema/contracts/stir.ts'

export interface VerifiedCaller {
  readonly verification: Verification
  readonly verstat: Verstat
  /** Null: its network says nothing, or it is not proved. */
  readonly attestation: Attestation | null
  /** One clause: who has signed, or why the caller is not proved. */
  readonly why: string
  /** The numbers that the signatures were compared with, in normal form. */
  readonly orig: string
  readonly dest: string
  /** The Identity headers, as they were received. */
  readonly identities: readonly string[]
  /** The response where such calls are refused; absent: the caller is proved. */
  readonly refusal?: { readonly status: VerificationStatus; readonly reason: string } | undefined
}
