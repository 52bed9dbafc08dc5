/**
 * Telephone numbers as a resource: whose each one is, and what is known of it. Memory answers, from
 * the table `phone_number`.
 */
import type { Attestation } from './caller-identity.ts'

/** A number, or a block of numbers of the same length. */
export interface OwnedNumber {
  readonly id: number
  /** First and last number in normal form; a single number is both. */
  readonly first: string
  readonly last: string
  readonly tenantId: number | null
  /** The customer that owns it; `null`: nobody but its tenant. */
  readonly customerId: number | null
  /** Name that goes with it when it is presented; empty: none. */
  readonly displayName: string
  /** How far it can be vouched for when it is presented; `null`: as its owner says. */
  readonly attestation: Attestation | null
  /** An inactive number is neither called nor presented. */
  readonly isActive: boolean
}

/** Who pays for a call, and so whose numbers it may present. */
export interface NumberOwner {
  readonly tenantId: number | null
  readonly customerId: number | null
}

export interface OwnedNumbers {
  /** Finds the row that holds this number in normal form. */
  find(number: string): OwnedNumber | undefined
  /** Tells whether a payer may present the number as its own: active, and its customer's. */
  isOwned(number: string, owner: NumberOwner): boolean
}
