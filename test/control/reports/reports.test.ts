import { expect, test } from 'vitest'
import type { ReportRequest } from '../../../control/reports/report-chunks.ts'
import { openReports } from '../../../control/reports/reports.ts'
import { openControl, startOfTime } from '../../support/control.ts'

const filter = { tenantId: null, from: 0, before: startOfTime, disposition: undefined }
const request: ReportRequest = { filter, format: 'json', page: undefined }

async function open() {
  let now = 0
  const { store } = await openControl()
  const reports = openReports({ store, now: () => now, log: () => undefined })
  const begin = async (tenantId: number | null = null) => {
    const pieces = reports.open({ ...request, filter: { ...filter, tenantId } })
    await pieces?.next()
    return pieces
  }
  return { reports, begin, wait: (ms: number) => (now += ms) }
}

test('unread reports make room after a minute, reports being read do not', async () => {
  const { begin, wait } = await open()
  const under = await Promise.all(Array.from({ length: 16 }, () => begin()))
  wait(60_001)
  expect(await begin()).toBeDefined()
  const again = await Promise.all(Array.from({ length: 15 }, () => begin()))
  expect(again.every((pieces) => pieces !== undefined)).toBe(true)
  expect(await begin()).toBeUndefined()
  // Its reader must not take it for the whole report.
  await expect(under[0]?.next()).rejects.toThrow('closed')
})

test('one tenant takes no room of another', async () => {
  const { begin, wait } = await open()
  const under = await Promise.all(Array.from({ length: 4 }, () => begin(1)))
  expect(under.every((pieces) => pieces !== undefined)).toBe(true)
  expect(await begin(1)).toBeUndefined()
  expect(await begin(2)).toBeDefined()
  expect(await begin()).toBeDefined()
  wait(60_001)
  expect(await begin(1)).toBeDefined()
})
