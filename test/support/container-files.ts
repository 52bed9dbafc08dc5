/** The contents of Dockerfile, for tests that run its commands without a container. */
import { readFileSync } from 'node:fs'

/** One instruction a line, without comments. */
export const imageLines = (): readonly string[] =>
  readFileSync('Dockerfile', 'utf8')
    .split('\n')
    .filter((line) => !line.startsWith('#'))
    .join('\n')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')

/** The one that counts in the image. */
export const lastInstruction = (name: string): string =>
  imageLines().findLast((line) => line.startsWith(`${name} `)) ?? ''

/** The words of an instruction in the form of JSON, such as CMD. */
export const wordsOf = (name: string): string[] =>
  JSON.parse(/\[.*\]$/.exec(lastInstruction(name))?.[0] ?? '[]') as string[]
