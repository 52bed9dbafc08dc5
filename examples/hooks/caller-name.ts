/**
 * CNAM: `CNAM_URL?number=…` is asked for the name of a caller from outside who shows none. The
 * answer is `{"name": "Globex"}`, and the called phone shows it. A call waits CNAM_WAIT_MS at most;
 * a name that comes later is there for the next call.
 */
import { setTimeout as wait } from 'node:timers/promises'
import type { Hooks } from 'tollgate'

const url = process.env.CNAM_URL ?? 'http://127.0.0.1:8071/'
const waitMs = Number(process.env.CNAM_WAIT_MS ?? 40)
const keepMs = 86_400_000
const maxNames = 50_000
const known = new Map<string, { readonly name: Promise<string>; readonly until: number }>()

async function ask(number: string): Promise<string> {
  const answer = await fetch(`${url}?number=${number}`, { signal: AbortSignal.timeout(2_000) })
  if (!answer.ok) throw new Error(`${url} answers ${answer.status}`)
  const { name = '' } = (await answer.json()) as { readonly name?: string }
  return name.replace(/\p{C}/gu, '').slice(0, 50)
}

function nameOf(number: string): Promise<string> {
  const kept = known.get(number)
  if (kept && kept.until > Date.now()) return kept.name
  if (known.size >= maxNames) known.delete(known.keys().next().value ?? '')
  const name = ask(number)
  known.set(number, { name, until: Date.now() + keepMs })
  name.catch(() => known.delete(number))
  return name
}

export const onInvite: Hooks['onInvite'] = async ({ from, fromName, source }) => {
  const number = from.replace('+', '')
  if (fromName || source.kind === 'extension' || !/^\d{5,15}$/.test(number)) return
  const name = await Promise.race([nameOf(number), wait(waitMs, '')])
  if (name !== '') return { fromName: name }
}
