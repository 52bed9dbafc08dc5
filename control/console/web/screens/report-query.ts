/** Which calls are searched: by the address, and for the API. */
import { DAY_MS } from '../parts/format.ts'

/** Lengths of the periods in days. */
export const periods = { '1': 'Last 24 hours', '7': 'Last 7 days', '30': 'Last 30 days' } as const
/** Parameters of the API. */
export const searches = {
  number: 'Either number',
  caller: 'Caller',
  called: 'Called number',
  carrier: 'Carrier',
  node: 'PBX node',
  call_id: 'Call-ID',
  cause: 'Cause',
  customer_id: 'Customer (id)',
} as const
export const dispositions = [
  'ANSWERED',
  'NO ANSWER',
  'BUSY',
  'CANCELED',
  'FAILED',
  'CONGESTION',
] as const

/** The query of the address as that of the API: only what it knows. */
export function reportQuery(query: Readonly<Record<string, string>>, present: number): string {
  const days = query['days'] !== undefined && query['days'] in periods ? Number(query['days']) : 1
  const words = new URLSearchParams({
    start_date: new Date(present - days * DAY_MS).toISOString(),
    end_date: new Date(present).toISOString(),
  })
  const { disposition = '', by = 'number', for: text = '' } = query
  if (dispositions.some((each) => each === disposition)) words.set('disposition', disposition)
  if (text !== '' && by in searches) words.set(by, text)
  return words.toString()
}

/** The most that one page of the API has. */
export const PAGE_ROWS = 200

/** The page that the address names, of `count` rows. */
export function pageOf({ page = '1' }: Readonly<Record<string, string>>, count: number) {
  const last = Math.max(1, Math.ceil(count / PAGE_ROWS))
  const number = pageNumber(page)
  return {
    first: (number - 1) * PAGE_ROWS + 1,
    last: Math.min(number * PAGE_ROWS, count),
    newer: number > 1 ? Math.min(number - 1, last) : undefined,
    older: number < last ? number + 1 : undefined,
  }
}

export const pageNumber = (text: string | undefined): number =>
  text !== undefined && /^[1-9]\d{0,6}$/.test(text) ? Number(text) : 1
