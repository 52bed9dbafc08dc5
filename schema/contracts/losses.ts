/** Answered calls that loss protection warns of, of one customer, price and carrier. */
export interface LossTrouble {
  /** The owner of the protection that warns; null: the platform. */
  readonly tenantId: number | null
  readonly customerId: number
  readonly carrier: string
  /** The prefix of the price that the customer pays. */
  readonly prefix: string
  readonly currency: string
  /** Expected of the last such call, as the amounts. */
  readonly seconds: number
  readonly saleMicros: number
  readonly costMicros: number
  readonly marginMicros: number
  readonly calls: number
  readonly firstAt: number
  readonly lastAt: number
  readonly lastCallUuid: string
  /** When its owner was told of it the last time. */
  readonly toldAt: number
}
