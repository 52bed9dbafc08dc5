/** Threads that work in the background leave the processors to those of the calls. */
import { readdirSync, readFileSync } from 'node:fs'
import { getPriority, setPriority } from 'node:os'
import { expect, onTestFinished, test } from 'vitest'
import { TollgateProcess } from '../support/tollgate-process.ts'

/** The niceness of each thread of a process, with the name that Linux shows. */
const threadsOf = (pid: number): readonly (readonly [name: string, nice: number])[] =>
  readdirSync(`/proc/${pid}/task`).map((task) => {
    const stat = readFileSync(`/proc/${pid}/task/${task}/stat`, 'utf8')
    const end = stat.lastIndexOf(')')
    const fields = stat.slice(end + 2).split(' ')
    return [stat.slice(stat.indexOf('(') + 1, end), Number(fields[16])]
  })

/** Starts the threads of reports and of imports. */
async function withThreads() {
  const tollgate = await TollgateProcess.start({ rate_plans: [{ name: 'plan' }] })
  onTestFinished(() => tollgate.stop())
  const key = await tollgate.createKey('--name', 'threads', '--scopes', '*')
  const ask = async (path: string, body?: string): Promise<number> => {
    const headers = { authorization: `Bearer ${key}` }
    const url = `http://127.0.0.1:${tollgate.apiPort}/api/v1${path}`
    const answer = await fetch(
      url,
      body === undefined
        ? { headers }
        : { method: 'POST', headers: { ...headers, 'content-type': 'text/csv' }, body },
    )
    await answer.text()
    return answer.status
  }
  const work = async (): Promise<void> => {
    const period = 'start_date=2026-01-01T00:00:00Z&end_date=2026-01-02T00:00:00Z'
    expect(await ask(`/reports/cdrs?${period}&format=csv`)).toBe(200)
    const table = 'prefix,rate_per_minute\n49,0.01\n'
    expect(await ask('/rates/import?rate_plan=plan', table)).toBe(200)
  }
  return { tollgate, work }
}

/** Theirs is the lock of the database, for which others wait. */
const ofImports = 10
const ofReports = 19
const nicest = 19

const isLinux = process.platform === 'linux'

test.runIf(isLinux)('they are nicer than it, and no other thread is', async () => {
  const { tollgate, work } = await withThreads()
  const usual = getPriority(tollgate.pid)
  await work()
  expect(getPriority(tollgate.pid)).toBe(usual)
  const nicer = threadsOf(tollgate.pid).filter(([, nice]) => nice !== usual)
  expect(nicer.map(([, nice]) => nice).toSorted((a, b) => a - b)).toEqual([
    usual + ofImports,
    usual + ofReports,
  ])
  // They write the journal.
  const writers = threadsOf(tollgate.pid).filter(([name]) => name.startsWith('libuv'))
  expect(new Set(writers.map(([, nice]) => nice))).toEqual(new Set([usual]))
})

test.runIf(isLinux)('in a process that is nice itself, they are nicer still', async () => {
  const { tollgate, work } = await withThreads()
  const usual = getPriority(tollgate.pid) + 5
  setPriority(tollgate.pid, usual)
  await work()
  const nices = threadsOf(tollgate.pid).map(([, nice]) => nice)
  expect(nices).toContain(usual + ofImports)
  expect(nices).toContain(nicest)
})
