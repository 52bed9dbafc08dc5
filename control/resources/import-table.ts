/** Imports a table, of whichever kind, in whichever thread. */
import type { Tables } from '../../schema/sql/query.ts'
import { importRates, type RateOutcome, type RateWork } from './import-rates.ts'
import { importNumbers, type NumberOutcome, type NumberWork } from './number-import.ts'

export type ImportWork = RateWork | NumberWork
export type ImportOutcome = RateOutcome | NumberOutcome

/** Throws an `ApiError` for a table that cannot be imported. */
export const importTable = (store: Tables, work: ImportWork): Promise<ImportOutcome> =>
  work.kind === 'rates' ? importRates(store, work) : importNumbers(store, work)
