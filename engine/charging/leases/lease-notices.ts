/** What processes that share wallets tell each other. A notice that is lost delays a call, and nothing else. */

export interface Notices {
  /** Returns what ends it. */
  on(channel: string, handler: (payload: string) => void): () => void
  notify(channel: string, payload: string): void
}

/** A call waits for money of these wallets. */
export const ASK = 'tollgate_lease_asked'
/** Money of these wallets was given back. */
export const FREED = 'tollgate_lease_freed'

type Wallets = readonly (readonly [walletId: number, needMicros: bigint])[]

/** PostgreSQL takes less than 8,000 bytes. */
const WALLETS_OF_A_MESSAGE = 150

export function messages(node: string, wallets: Wallets): readonly string[] {
  const texts: string[] = []
  for (let start = 0; start < wallets.length; start += WALLETS_OF_A_MESSAGE) {
    const some = wallets.slice(start, start + WALLETS_OF_A_MESSAGE)
    const written = some.map(([walletId, need]) => [walletId, String(need)])
    texts.push(JSON.stringify({ node, wallets: written }))
  }
  return texts
}

/** One that cannot be read says nothing: another version may have sent it. */
export function readMessage(payload: string): { readonly node: string; readonly wallets: Wallets } {
  try {
    const { node, wallets } = JSON.parse(payload) as {
      readonly node: unknown
      readonly wallets: unknown
    }
    if (typeof node !== 'string' || !Array.isArray(wallets)) return nothing
    return { node, wallets: wallets.flatMap(readWallet) }
  } catch {
    return nothing
  }
}

const nothing = { node: '', wallets: [] } as const

function readWallet(wallet: unknown): Wallets {
  if (!Array.isArray(wallet)) return []
  const [walletId, need] = wallet as readonly unknown[]
  const isRead = typeof walletId === 'number' && typeof need === 'string' && /^\d+$/.test(need)
  return isRead ? [[walletId, BigInt(need)]] : []
}
