/** What a new system has and lacks, as the API tells it. */
import { signal } from '@preact/signals'
import { getBare, getRows, type Answer, type Rows } from '../api/api.ts'
import type { CallReport } from '../api/views.ts'
import { isGlobal, may } from '../api/session.ts'
import { now } from '../browser.ts'
import type { Setup } from './steps.ts'

/** Undefined: not known, or nothing that this user may set up. */
export const setup = signal<Setup | undefined>(undefined)

/** The start page takes the place of the figures, which would all be empty. */
export const isIncomplete = (): boolean => {
  const { value } = setup
  // A trusted network is a source, too: without a trunk there may be calls all the same.
  return value !== undefined && !value.call && !(value.node && value.price && value.customer)
}

/** Something is left to be done before the first call. */
export const isStartListed = (): boolean => isIncomplete() || lacksSource()

const lacksSource = (): boolean => setup.value?.call === false && !setup.value.source

const YEAR_MS = 366 * 86_400_000

export async function findSetup(): Promise<void> {
  if (!isGlobal() || !may('carriers:write')) return
  const [carriers, phones, node, price, customer, call] = await Promise.all([
    has('/routing/carriers'),
    has('/pbx/extensions'),
    has('/dispatcher'),
    // With an OCS elsewhere, prices and customers are there.
    has('/rates'),
    has('/customers'),
    hasCalls(),
  ])
  setup.value = { source: carriers || phones, node, price, customer, call }
}

const has = async (path: string): Promise<boolean> => {
  const answer: Answer<Rows<unknown>> = await getRows(`${path}?limit=1`)
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
