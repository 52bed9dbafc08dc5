import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { DatabaseUnavailable, DatabaseRefused } from '../../../schema/sql/failure.ts'
import { type RetriedStart, startWithRetry } from '../../../engine/commands/start-with-retry.ts'
import { freePort } from '../../support/free-port.ts'
import { freshDatabase, hasPostgres } from '../../support/postgres.ts'
import { type PostgresProxy, postgresProxy } from '../../support/postgres-proxy.ts'

const away = new DatabaseRefused('cannot use database x: it does not answer', {
  cause: new DatabaseUnavailable('it does not answer'),
})

describe.runIf(hasPostgres)('a start whose database server is away', () => {
  let proxy: PostgresProxy
  let drop: () => Promise<void>
  let port: number
  let log: string[]

  beforeEach(async () => {
    const made = await freshDatabase('empty')
    drop = made.drop
    proxy = await postgresProxy(made.url)
    proxy.cut()
    port = await freePort()
    log = []
  })
  afterEach(async () => {
    proxy.close()
    await drop()
  })

  /** The first attempts fail. Waits pass at once. */
  function starting(failures: number, more: Partial<RetriedStart<string>> = {}) {
    let attempts = 0
    return startWithRetry<string>({
      start: async () => {
        attempts += 1
        if (attempts <= failures) throw away
        return `started by attempt ${attempts}`
      },
      databaseUrl: proxy.url,
      address: { host: '127.0.0.1', port },
      certificate: undefined,
      now: () => 0,
      steadyNow: () => 0,
      schedule: (work) => {
        const timer = setImmediate(work)
        return () => clearImmediate(timer)
      },
      randomBytes: (size) => Buffer.alloc(size),
      log: (level, message) => void log.push(`${level} ${message}`),
      stopped: new Promise(() => undefined),
      onWaiting: () => undefined,
      ...more,
    })
  }
  const ask = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`)
    const { code } = (await answer.json()) as { readonly code?: string }
    return [answer.status, code]
  }

  test('waits for it, says so at the address of the API and in the log, and goes on then', async () => {
    let looks = 0
    const answers: unknown[] = []
    const looked: Promise<void>[] = []
    const look = async (): Promise<void> => {
      answers.push(await ask('/readyz'), await ask('/livez'), await ask('/api/v1/customers'))
      proxy.mend()
    }
    const result = await starting(1, {
      onWaiting: () => {
        looks += 1
        if (looks === 3) looked.push(look())
      },
    })
    await Promise.all(looked)
    expect(result).toBe('started by attempt 2')
    expect(answers).toEqual([
      [503, 'waiting_for_database'],
      [200, undefined],
      [503, 'waiting_for_database'],
    ])
    expect(log[0]).toMatch(/^error the database server does not answer/)
    expect(log).toContain('warn still waiting for the database server')
    expect(log.at(-1)).toBe('info the database server answers: the start goes on')
    // Its address is free for the API.
    await expect(ask('/livez')).rejects.toThrow('fetch failed')
  })

  test('ends at once when the process is to end', async () => {
    let stop = (): void => undefined
    const stopped = new Promise<void>((resolve) => (stop = resolve))
    const waiting = starting(1, {
      stopped,
      schedule: () => () => undefined,
      onWaiting: () => stop(),
    })
    expect(await waiting).toBeUndefined()
  })

  test('is not tried again where a person has to mend something first, or another process serves meanwhile', async () => {
    const refused = new DatabaseRefused('cannot use database x: the password is wrong')
    const start = (): Promise<string> => Promise.reject(refused)
    await expect(starting(0, { start })).rejects.toBe(refused)
    await expect(starting(1, { databaseUrl: undefined })).rejects.toBe(away)
    expect(log).toEqual([])
  })
})
