/**
 * `npm run bench [-- name [arguments]]`: each module beside this one is a benchmark that exports
 * `describe` and `run`. Without a name, or with `all`, they run one after the other.
 */
import { readdirSync } from 'node:fs'

interface Benchmark {
  readonly describe: string
  readonly run: (words: readonly string[]) => Promise<void>
}

const names = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith('.ts') && file !== 'index.ts')
  .map((file) => file.slice(0, -'.ts'.length))
  .toSorted()

async function load(name: string): Promise<Benchmark> {
  const module: Partial<Benchmark> = await import(`./${name}.ts`)
  const { describe, run } = module
  if (describe === undefined || run === undefined)
    throw new Error(`test/bench/${name}.ts exports no describe and run`)
  return { describe, run }
}

async function list(): Promise<void> {
  console.log('npm run bench [-- name [arguments]]; all runs them all. Names:')
  for (const name of names) console.log(`  ${name}: ${(await load(name)).describe}`)
}

const [wanted = 'all', ...words] = process.argv.slice(2)

const asksForHelp = words.includes('--help') || words.includes('-h')

if (['--help', '-h', 'list'].includes(wanted)) await list()
else if (wanted !== 'all' && !names.includes(wanted)) {
  console.error(`there is no benchmark "${wanted}"`)
  await list()
  process.exitCode = 2
} else {
  for (const name of wanted === 'all' ? names : [wanted]) {
    const { describe, run } = await load(name)
    console.log(`\n${name}: ${describe}`)
    if (!asksForHelp) await run(words)
  }
}
