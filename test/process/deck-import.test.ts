/** A deck while the program runs: how far it is, and what a program that is killed leaves of it. */
import { expect, onTestFinished, test } from 'vitest'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually } from '../support/waiting.ts'

const lines = 60_000
/** Reading them takes a second, and many where other tests run. */
const LONGEST_MS = 120_000

/** The rates of a deck in the order of their prefixes, all with one price. */
const deckOf = (price: string): string =>
  `Code,Rate\n${Array.from({ length: lines }, (_, n) => `${1_000_000 + n},${price}\n`).join('')}`

interface Progress {
  readonly stage: string
  readonly done: number
  readonly of: number | null
}

async function withPlan() {
  const tollgate = await TollgateProcess.start({ rate_plans: [{ name: 'cost' }] })
  onTestFinished(() => tollgate.stop())
  const key = await tollgate.createKey('--name', 'decks', '--scopes', '*')
  const api = async (method: string, path: string, body?: string): Promise<unknown> => {
    const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body !== undefined && { 'content-type': 'text/csv' }),
      },
      ...(body !== undefined && { body }),
    })
    const { data } = (await answer.json()) as { readonly data?: unknown }
    return data ?? answer.status
  }
  const mapping = JSON.stringify({ columns: { prefix: 'Code', rate_per_minute: 'Rate' } })
  const query = new URLSearchParams({ rate_plan: 'cost', mapping })
  const send = (price: string) => api('POST', `/rates/decks?${query.toString()}`, deckOf(price))
  const progress = () => api('GET', '/rates/decks/progress') as Promise<Progress>
  /** Resolves in the middle of the transaction. */
  const storing = () =>
    eventually(async () => {
      const found = await progress()
      expect(found).toMatchObject({ stage: 'storing', of: lines })
      expect(found.done).toBeGreaterThan(0)
      expect(found.done).toBeLessThan(lines)
    }, LONGEST_MS)
  const priceOf = async (number: string) => {
    const found = await api('GET', `/rates/lookup?rate_plan=cost&number=${number}`)
    return typeof found === 'number'
      ? found
      : (found as { readonly rate_per_minute_exact: string }).rate_per_minute_exact
  }
  const [first, last] = ['10000009', `${1_000_000 + lines - 1}9`]
  const prices = async () => [await priceOf(first), await priceOf(last)]
  return { tollgate, api, send, progress, storing, prices }
}

test('a program that is killed in the middle of a deck, or of its undoing, leaves nothing of it', async () => {
  const { tollgate, api, send, progress, storing, prices } = await withPlan()
  const killed = async (work: Promise<unknown>): Promise<void> => {
    const failure = work.catch((error: unknown) => error)
    await storing()
    await tollgate.kill()
    expect(await failure).toBeInstanceOf(TypeError)
    await tollgate.restart()
  }
  expect(await progress()).toEqual({ stage: 'none', done: 0, of: null })

  await killed(send('0.01'))
  expect(await api('GET', '/rates/decks')).toEqual([])
  expect(await prices()).toEqual([404, 404])

  expect(await send('0.01')).toMatchObject({ created: lines, prefixes: lines })
  expect(await progress()).toEqual({ stage: 'none', done: 0, of: null })
  await killed(send('0.02'))
  expect(await prices()).toEqual(['0.01', '0.01'])

  expect(await send('0.02')).toMatchObject({ updated: lines })
  const [deck] = (await api('GET', '/rates/decks')) as { readonly id: number }[]
  await killed(api('POST', `/rates/decks/${deck?.id}/undo`))
  expect(await prices()).toEqual(['0.02', '0.02'])
  expect(await api('POST', `/rates/decks/${deck?.id}/undo`)).toMatchObject({ restored: lines })
  expect(await prices()).toEqual(['0.01', '0.01'])
})
