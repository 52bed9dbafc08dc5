/** How `GET /search` finds the rows of a table: said by its definition, or by its store. */
import type { RawBuilder } from 'kysely'

export interface FoundBy {
  /** The name of its hits in an answer; absent: that of the table. */
  readonly kind?: string
  /** The column with the name of a row, by its table: `customer.name`; or a text of columns. */
  readonly title: string | RawBuilder<string>
  /** Columns that are shown beside the name, and searched as well. Never a secret. */
  readonly beside?: readonly string[]
  /** Columns that have an index: what begins with the text is found in a table of any size. */
  readonly starts?: readonly string[]
  /** Columns with an index that have telephone numbers, with or without a plus. */
  readonly numbers?: readonly string[]
  /** Condition on rows that contain a number of so many digits, in a table of any size. */
  readonly holdsNumber?: (digits: string) => RawBuilder<boolean>
  /** People know a row by its id as well. */
  readonly isKnownById?: true
  /** The screen of the console; with `page`, a row has a page of its own there, by this column. */
  readonly screen: string
  readonly page?: string
  /** Only credentials of the platform see the screen. */
  readonly isOfPlatform?: true
  /** Only where this process charges calls. */
  readonly isOfBilling?: true
}

/** A table with what a search needs of it. */
export interface FoundTable extends FoundBy {
  readonly kind: string
  readonly table: RawBuilder<unknown>
  /** `customer.id` */
  readonly id: string
  /** The column with the tenant of a row. */
  readonly owner: string
  /** Absent: rows have no SIP domain. */
  readonly domain?: string | undefined
  /** Joins that the columns need. */
  readonly joins?: RawBuilder<unknown>
}
