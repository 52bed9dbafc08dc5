/** Calls that have ended, page after page, and those that end meanwhile. */
import { useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { getBare } from '../api/api.ts'
import { every, now } from '../api/browser.ts'
import { onEvent } from '../api/live.ts'
import { sessionEnded } from '../api/session.ts'
import type { CallRecordView, CallReport } from '../api/views.ts'
import { useResource } from '../parts/resource.ts'
import { CallTail } from './call-tail.ts'

/** Rows that are loaded at a time. */
const PAGE_ROWS = 100
/** Rows of a page of the console; an export has all. */
export const MAX_ROWS = 5_000

export interface EndedCallSearch {
  /** Filters, as parameters of the API. */
  readonly filters: Readonly<Record<string, string>>
  /** Milliseconds UTC. */
  readonly from: number
  readonly before: number
  /** `-start`. */
  readonly sort: string
}

/** The search as a query of the API. */
export const searchWords = ({ filters, from, before }: Omit<EndedCallSearch, 'sort'>): string =>
  new URLSearchParams({
    start_date: new Date(from).toISOString(),
    end_date: new Date(before).toISOString(),
    ...filters,
  }).toString()

interface FurtherRows {
  readonly path: string
  readonly rows: readonly CallRecordView[]
  readonly cursor: string | null
}

/** The list, of which `loadMore` brings the next page; undefined: it has all. */
export function useEndedCalls(search: EndedCallSearch) {
  const path = `/reports/cdrs?${searchWords(search)}&sort=${search.sort}&limit=${PAGE_ROWS}`
  const { data, problem } = useResource(path, () => getBare<CallReport>(path))
  const further = useSignal<FurtherRows>({ path: '', rows: [], cursor: null })
  const failure = useSignal<string | undefined>(undefined)
  const isLoading = useRef(false)
  const { value: report } = data
  const isMine = further.value.path === path
  const rows = useMemo(
    () => report && [...report.records, ...(isMine ? further.value.rows : [])],
    [report, isMine, further.value],
  )
  const cursor = isMine ? further.value.cursor : (report?.next_cursor ?? null)
  const loadMore = async (): Promise<void> => {
    if (isLoading.current || cursor === null) return
    isLoading.current = true
    const next = `${path}&cursor=${encodeURIComponent(cursor)}&totals=false`
    const answer = await getBare<CallReport>(next)
    isLoading.current = false
    if (answer.kind === 'signed-out') return sessionEnded()
    failure.value = answer.kind === 'failed' ? answer.message : undefined
    if (answer.kind !== 'ok') return
    const { records, next_cursor: following = null } = answer.data
    const known = isMine ? further.value.rows : []
    further.value = { path, rows: [...known, ...records], cursor: following }
  }
  const isFull = (rows?.length ?? 0) >= MAX_ROWS
  return {
    rows,
    report,
    problem: problem.value ?? failure.value,
    isFull,
    loadMore: cursor === null || isFull ? undefined : () => void loadMore(),
  }
}

const TICK_MS = 1_000

/** Calls that end while the list is shown and match its filters; none while it is off. */
export function useCallTail(filters: EndedCallSearch['filters'], from: number, isOn: boolean) {
  const tail = useRef(new CallTail())
  const shown = useSignal(0)
  const wanted = new URLSearchParams(filters).toString()
  const ask = async ({ uuid, start }: { uuid: string; start: string }): Promise<void> => {
    const startsAt = Date.parse(start)
    if (startsAt < from) return
    // The start says where it is: a report of all calls would look for it in all of them.
    const words = searchWords({
      filters: { ...filters, call_uuid: uuid, limit: '1', totals: 'false' },
      from: startsAt,
      before: startsAt + 1,
    })
    const { current } = tail
    const answer = await getBare<CallReport>(`/reports/cdrs?${words}`)
    const [record] = answer.kind === 'ok' ? answer.data.records : []
    // Another search has begun.
    if (record === undefined || current !== tail.current) return
    tail.current.add(record)
    shown.value += 1
  }
  useEffect(() => {
    tail.current = new CallTail()
    shown.value += 1
    if (!isOn) return
    const stops = [
      onEvent((event) => tail.current.hear(event, now())),
      every(TICK_MS, () => {
        for (const due of tail.current.due(now())) void ask(due)
      }),
    ]
    return () => {
      for (const stop of stops) stop()
    }
  }, [wanted, from, isOn])
  void shown.value
  return tail.current
}
