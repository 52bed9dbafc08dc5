/** An action on many rows of a list at once. */
import type { ComponentChildren } from 'preact'
import type { ConsoleAnswer } from '../api/api.ts'

export interface ManyAction<Row> {
  /** Text of the button, and the verb of the title: `Delete`. */
  readonly text: string
  /** `deleted`, as in “3 customers are deleted”. */
  readonly done: string
  readonly isDangerous?: boolean
  /** Says in a sentence what it does to each. */
  readonly effect: string
  /** Fields that are entered for all of them. */
  readonly fields?: ComponentChildren
  /** Rows that it cannot be done to, or needs not, with the reason: they are left out. */
  readonly spared?: (rows: readonly Row[]) => Promise<ReadonlyMap<Row, string>>
  /** `seen`: the version that a person has seen, after changes of others were shown. */
  readonly send: (row: Row, form: FormData, seen?: string) => Promise<ConsoleAnswer<unknown>>
}

export interface ManyRows<Row> {
  /** `customer`, `customers` */
  readonly one: string
  readonly many: string
  /** Those that change something; the export is there for whoever sees the rows. */
  readonly actions: readonly ManyAction<Row>[]
}
