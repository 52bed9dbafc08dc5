import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, onTestFinished, test } from 'vitest'
import type { Page } from '../../../control/http/envelope.ts'
import type { ReportRequest } from '../../../control/reports/report-chunks.ts'
import { ReportThread } from '../../../control/reports/report-thread.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

/** Speaks as `report-worker.ts` does; its reports are what their format says, or as long as their page. */
const stub = `
import { parentPort, workerData } from 'node:worker_threads'
const left = new Map()
const asked = []
parentPort.on('message', ({ report, request, isOver }) => {
  if (isOver) return void asked.push('over ' + report + ', ' + (left.get(report)?.length ?? 0) + ' left')
  if (request) left.set(report, [workerData.path, request.format, ...asked])
  if (request?.page) left.set(report, Array(request.page.limit).fill('piece'))
  if (request?.format === 'csv') process.exit(1)
  if (request?.format === 'ndjson') return parentPort.postMessage({ report, error: 'no disk' })
  const text = left.get(report)?.shift()
  parentPort.postMessage(text === undefined ? { report } : { report, bytes: new TextEncoder().encode(text) })
})
`

function open() {
  const file = join(temporaryFolder(), 'stub.mjs')
  writeFileSync(file, stub)
  const thread = new ReportThread(pathToFileURL(file), { path: 'a path' }, () => undefined)
  onTestFinished(() => thread.stop())
  const begin = (format: ReportRequest['format'], page?: Page) => {
    const filter = { tenantId: null, from: 0, before: 1, disposition: undefined }
    return thread.open({ filter, format, page })
  }
  const read = async (format: ReportRequest['format']): Promise<string> => {
    let text = ''
    for await (const bytes of begin(format)) text += `${new TextDecoder().decode(bytes)};`
    return text
  }
  return { begin, read }
}

test('pieces come in order, of several reports at once, and the thread hears when one is over', async () => {
  const { read } = open()
  expect(await Promise.all([read('json'), read('json')])).toEqual(['a path;json;', 'a path;json;'])
  expect(await read('json')).toBe('a path;json;over 1, 0 left;over 2, 0 left;')
})

test('what fails in the thread fails one report', async () => {
  const { read } = open()
  await expect(read('ndjson')).rejects.toThrow('no disk')
  expect(await read('json')).toBe('a path;json;over 1, 0 left;')
})

test('a thread that ends fails the reports that wait for it; the next one starts another', async () => {
  const { read } = open()
  await expect(read('csv')).rejects.toThrow('has ended')
  expect(await read('json')).toBe('a path;json;')
})

test('a report whose thread has ended between two pieces fails, it does not seem complete', async () => {
  const { begin, read } = open()
  const drain = async (pieces: AsyncGenerator<Uint8Array, void>): Promise<void> => {
    for (;;) if ((await pieces.next()).done === true) return
  }
  const pieces = begin('json', { page: 1, limit: 20 })
  expect((await pieces.next()).done).toBe(false)
  await expect(read('csv')).rejects.toThrow('has ended')
  await expect(drain(pieces)).rejects.toThrow('has ended')
  const others = begin('json', { page: 1, limit: 20 })
  await others.next()
  await expect(read('csv')).rejects.toThrow('has ended')
  expect(await read('json')).toBe('a path;json;')
  await expect(drain(others)).rejects.toThrow('has ended')
})

test('only a few pieces of a report are produced ahead of its reader', async () => {
  const { begin, read } = open()
  const pieces = begin('json', { page: 1, limit: 20 })
  await pieces.next()
  // Answers come in order: whatever was asked for before this has been made.
  await read('json')
  await pieces.return()
  expect(await read('json')).toBe('a path;json;over 2, 0 left;over 1, 16 left;')
})
