/** Which calls are searched: by the address, and for the API. */

const DAY_MS = 86_400_000

/** In days. */
export const periods = { '1': 'Last 24 hours', '7': 'Last 7 days', '30': 'Last 30 days' } as const
/** Parameters of the API. */
export const searches = {
  caller: 'Caller',
  called: 'Called number',
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
  const { disposition = '', by = 'called', for: text = '' } = query
  if (dispositions.some((each) => each === disposition)) words.set('disposition', disposition)
  if (text !== '' && by in searches) words.set(by, text)
  return words.toString()
}
