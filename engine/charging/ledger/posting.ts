/** What became of one ledger entry. */
export type Posting =
  | {
      readonly kind: 'posted'
      readonly balanceMicros: bigint
      /** Grows with each entry of a wallet: the greatest has the newest balance. */
      readonly entryId: number
    }
  | DuplicatePosting
  | { readonly kind: 'unknown_wallet' }

/** An entry of this kind and reference exists: its numbers, not those of the request. */
export interface DuplicatePosting {
  readonly kind: 'duplicate'
  readonly walletId: number
  readonly amountMicros: number
  readonly balanceMicros: bigint
}
