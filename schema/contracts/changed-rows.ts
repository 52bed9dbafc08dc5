/** Rows that were written or removed, by which memory follows the database. */
export interface ChangedRows<Kind extends string> {
  readonly of: Kind
  readonly ids: readonly number[]
}

export type ChangedRouting = ChangedRows<
  'tenant' | 'carrier' | 'outbound_route' | 'inbound_route' | 'agent' | 'dispatcher_set'
>

export type ChangedNumbers = ChangedRows<'number' | 'customer'>

export type ChangedPayers = ChangedRows<'customer' | 'extension' | 'tenant'>
