/**
 * Block list: callers in the file BLOCK_LIST (`blocked.txt`) are declined. A line is a number, or
 * with a star the beginning of numbers (`4990055*`); the rest of a line after `#` is a remark.
 * The file is read again when it changes.
 */
import { readFileSync, statSync, watchFile } from 'node:fs'
import type { Hooks } from 'tollgate'

const file = process.env.BLOCK_LIST ?? 'blocked.txt'
const maxBytes = 4_000_000
let blocked = new Set<string>()

function read(): void {
  try {
    if (statSync(file).size > maxBytes) throw new Error(`it has more than ${maxBytes} bytes`)
    const lines = readFileSync(file, 'utf8').split('\n')
    blocked = new Set(lines.map((line) => line.replace(/#.*|[^\d*]/g, '')).filter(Boolean))
    console.log(`${blocked.size} lines of ${file} block callers`)
  } catch (error) {
    const kept = blocked.size === 0 ? 'nobody is blocked' : 'the last list holds'
    console.warn(`${file} cannot be read, so ${kept}: ${(error as Error).message}`)
  }
}

read()
watchFile(file, { interval: 1_000 }, (now, before) => {
  if (now.mtimeMs !== before.mtimeMs) read()
})

export const onInvite: Hooks['onInvite'] = ({ from }) => {
  const number = from.replace('+', '')
  const beginnings = Array.from(number, (_, at) => `${number.slice(0, at + 1)}*`)
  if ([number, ...beginnings].some((line) => blocked.has(line)))
    return { refuse: { status: 603, reason: 'Decline' }, tags: { blocked: number } }
}
