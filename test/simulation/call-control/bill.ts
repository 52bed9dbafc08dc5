/** The cost of a call: what was used, and no more than what was granted. */
import type { CallRecord } from '../../../schema/contracts/call-record.ts'

/** `usedMs` null: it was not answered. `granted`: seconds; null: without limit. */
export function billComplaint(
  { billsec }: Pick<CallRecord, 'billsec'>,
  usedMs: number | null,
  granted: number | null,
): string | undefined {
  if (granted !== null && (usedMs ?? 0) > granted * 1_000)
    return `${usedMs} ms used of ${granted} s`
  const used = usedMs === null ? 0 : Math.max(1, Math.ceil(usedMs / 1_000))
  if (billsec !== used) return `${billsec} s billed, ${used} s used`
  return granted !== null && billsec > Math.max(1, granted)
    ? `${billsec} s billed of ${granted} s`
    : undefined
}
