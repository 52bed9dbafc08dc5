/**
 * Number portability: `LNP_URL?number=…` is asked to which network a called number belongs. The
 * answer `{"prefix": "7701"}` puts the prefix of that network in front of the number, so that its
 * rates and routes hold. A call waits LNP_WAIT_MS at most; a later answer serves the next call.
 */
import { setTimeout as wait } from 'node:timers/promises'
import type { Hooks } from 'tollgate'

const url = process.env.LNP_URL ?? 'http://127.0.0.1:8070/'
const waitMs = Number(process.env.LNP_WAIT_MS ?? 40)
const keepMs = 3_600_000
const maxNumbers = 100_000
const known = new Map<string, { readonly prefix: Promise<string>; readonly until: number }>()

async function ask(number: string): Promise<string> {
  const answer = await fetch(`${url}?number=${number}`, { signal: AbortSignal.timeout(2_000) })
  if (!answer.ok) throw new Error(`${url} answers ${answer.status}`)
  const { prefix = '' } = (await answer.json()) as { readonly prefix?: string }
  return prefix
}

function prefixOf(number: string): Promise<string> {
  const kept = known.get(number)
  if (kept && kept.until > Date.now()) return kept.prefix
  if (known.size >= maxNumbers) known.delete(known.keys().next().value ?? '')
  const prefix = ask(number)
  known.set(number, { prefix, until: Date.now() + keepMs })
  prefix.catch(() => known.delete(number))
  return prefix
}

export const onInvite: Hooks['onInvite'] = async ({ to }) => {
  const number = to.replace('+', '')
  if (!/^\d{7,15}$/.test(number)) return
  const prefix = await Promise.race([prefixOf(number), wait(waitMs, '')])
  if (prefix !== '') return { to: prefix + number, tags: { dialled: to } }
}
