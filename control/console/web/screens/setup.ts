/** Which of the first steps are done, by the API. */
import { signal } from '@preact/signals'
import { getBare, getRows, type ConsoleAnswer, type ListedRows } from '../api/api.ts'
import { now } from '../api/browser.ts'
import { isGlobal, may } from '../api/session.ts'
import type { CallReport } from '../api/views.ts'
import { DAY_MS } from '../parts/format.ts'
import type { Setup } from './steps.ts'

/** Undefined: not known, or nothing that this user may set up. */
export const setup = signal<Setup | undefined>(undefined)

/** The start page takes the place of the figures, which would all be empty. */
export const isIncomplete = (): boolean => {
  const { value } = setup
  return value !== undefined && !value.call && !(value.node && value.price && value.customer)
}

const YEAR_MS = 366 * DAY_MS

export async function findSetup(): Promise<void> {
  if (!isGlobal() || !may('carriers:write')) return
  const [node, price, customer, call] = await Promise.all([
    has('/dispatcher'),
    // An OCS elsewhere has its own prices and customers.
    has('/rates'),
    has('/customers'),
    hasCalls(),
  ])
  setup.value = { node, price, customer, call }
}

const has = async (path: string): Promise<boolean> => {
  const answer: ConsoleAnswer<ListedRows<unknown>> = await getRows(`${path}?limit=1`)
  return answer.kind === 'ok' ? answer.data.rows.length > 0 : true
}

async function hasCalls(): Promise<boolean> {
  const present = now()
  const words = new URLSearchParams({
    start_date: new Date(present - YEAR_MS).toISOString(),
    end_date: new Date(present + 1_000).toISOString(),
    limit: '1',
  })
  const answer = await getBare<CallReport>(`/reports/cdrs?${words.toString()}`)
  return answer.kind !== 'ok' || answer.data.records.length > 0
}
