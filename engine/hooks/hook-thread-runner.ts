/**
 * Runs the hooks of one file, in its thread: loads the file, calls its functions, checks what they
 * answer, and says what has become of each.
 */
import { pathToFileURL } from 'node:url'
import { getHeapStatistics } from 'node:v8'
import type { DecidingHook, HookName, ToldHook } from '../../schema/contracts/hooks.ts'
import { checkDecision } from '../../schema/rules/hook-decisions.ts'
import type { WayToMain } from './application/private-lines.ts'
import { ImportedFiles } from './imported-files.ts'
import { type HookFunction, hooksOf } from './loaded-hooks.ts'
import { PrintedLines } from './printed-lines.ts'
import { withPlace } from './syntax-place.ts'
import type { HostMessage, LoadedFile, PrintedLine, ThreadMessage } from './thread-messages.ts'
import { describeThrown, placeless, type ThrownProblem } from './thrown.ts'
import { ToldHooks } from './told-hooks.ts'
import type { CreateApplication, HookApplication } from './worker-application.ts'

export interface HookThreadWorld {
  readonly file: string
  /** The folder of this code, which is not the operator's. */
  readonly ownFolder: string
  /** Milliseconds of a steady clock, with fractions. */
  readonly now: () => number
  readonly post: (message: ThreadMessage) => void
  /** Ends the thread. */
  readonly end: () => void
  readonly createApplication?: CreateApplication
}

/** The next thread's server and connection are made meanwhile. */
const STILL_SERVES_MS = 3_000

/** Errors that nothing has caught: so many are told in a second. */
const MAX_UNCAUGHT = 20

export class HookThreadRunner {
  readonly #world: HookThreadWorld
  readonly #imported = new ImportedFiles()
  readonly #printed = new PrintedLines()
  readonly #told: ToldHooks
  #hooks: ReadonlyMap<HookName, HookFunction> = new Map()
  #application: HookApplication | undefined
  #serve: (way: WayToMain) => void = () => undefined
  readonly #main = new Promise<WayToMain>((resolve) => (this.#serve = resolve))
  #running = 0
  #isLeaving = false
  /** Calls are sent to the application until then: the next one may not take any yet. */
  #servesUntil = 0
  #uncaught = 0

  constructor(world: HookThreadWorld) {
    this.#world = world
    this.#told = new ToldHooks(world.now)
  }

  /** Tells the host whether the file can be used. */
  async load(): Promise<void> {
    const { file, ownFolder, post } = this.#world
    const url = pathToFileURL(file).href
    this.#imported.watch()
    this.#imported.add(url)
    try {
      const loaded = await this.#import(url)
      if (typeof loaded === 'string') {
        const problem = { ...placeless(loaded), file }
        return post({ type: 'broken', problem, files: this.#imported.all })
      }
      this.#imported.takeFresh()
      return post({ type: 'loaded', ...loaded, files: this.#imported.all })
    } catch (error) {
      const files = this.#imported.all
      const problem = withPlace(describeThrown(error, ownFolder), error, files, ownFolder)
      return post({ type: 'broken', problem: { ...problem, file: problem.file ?? file }, files })
    }
  }

  /** A string says why the file is not used. */
  async #import(url: string): Promise<Omit<LoadedFile, 'files'> | string> {
    this.#application = await this.#world.createApplication?.({
      main: this.#main,
      onTaking: (port) => this.#world.post({ type: 'taking', port }),
      print: ({ level, text }) => this.#printed.add(level, `${text}\n`),
      onError: (error) => this.uncaught(error),
    })
    const exported = (await import(url)) as Readonly<Record<string, unknown>>
    const read = hooksOf(exported)
    if (read.kind === 'problem') return read.message
    const { hooks, middleware, warnings } = read
    if (middleware !== undefined && this.#application === undefined)
      return 'its default export is a function, and middleware of drachtio-srf does not run here'
    if (middleware !== undefined) await this.#application?.startApplication(middleware)
    const hasApplication = this.#application?.isUsed === true
    if (hooks.size === 0 && !hasApplication)
      return warnings[0] ?? 'it exports no hook, such as "export const onInvite = (call) => …"'
    this.#hooks = hooks
    return {
      hooks: [...hooks.keys()],
      hasApplication,
      warnings: this.#imported.isComplete ? warnings : [...warnings, onlyOwnChanges],
    }
  }

  receive(message: HostMessage): void {
    switch (message.type) {
      case 'ask':
        return this.#ask(message.id, message.hook, message.argument)
      case 'tell':
        return this.#tell(message.hook, message.argument)
      case 'ping': {
        const { used_heap_size: heap, external_memory: external } = getHeapStatistics()
        return this.#world.post({ type: 'pong', usedBytes: heap + external })
      }
      case 'serve':
        return this.#serve(message.way)
      case 'leave':
        this.#isLeaving = true
        this.#servesUntil = this.#world.now() + STILL_SERVES_MS
    }
  }

  uncaught(error: unknown): void {
    this.#uncaught += 1
    if (this.#uncaught > MAX_UNCAUGHT) return
    const problem = this.#describe(error)
    this.#world.post({ type: 'uncaught', problem })
  }

  /** Takes the place of `write` of a stream: what is printed goes into the log of the host. */
  writerOf(level: PrintedLine['level']): NodeJS.WriteStream['write'] {
    return (chunk: unknown, ...rest: unknown[]): boolean => {
      this.#printed.add(
        level,
        typeof chunk === 'string' ? chunk : Buffer.from(chunk as Uint8Array).toString(),
      )
      const callback = rest.find((each): each is () => void => typeof each === 'function')
      if (callback !== undefined) queueMicrotask(callback)
      return true
    }
  }

  /** Sends what has gathered; to be called often. */
  flush(): void {
    const { post } = this.#world
    const printed = this.#printed.take()
    if (printed !== undefined) post({ type: 'printed', ...printed })
    const reports = this.#told.take()
    if (reports.length > 0) post({ type: 'told', reports })
    const files = this.#imported.takeFresh()
    if (files.length > 0) post({ type: 'imported', files })
    if (!this.#isLeaving || this.#running > 0 || this.#told.running > 0) return
    if (this.#application === undefined) return this.#world.end()
    const { isUsed, pending } = this.#application
    if (pending > 0 || (isUsed && this.#world.now() < this.#servesUntil)) return
    this.#isLeaving = false
    void this.#application.stop().finally(() => this.#world.end())
  }

  /** Another second has begun. */
  renew(): void {
    this.#printed.renew()
    this.#uncaught = 0
  }

  #ask(id: number, hook: DecidingHook, argument: unknown): void {
    const { now } = this.#world
    const start = now()
    this.#running += 1
    try {
      const answer = this.#hooks.get(hook)?.(argument)
      if (!isPromise(answer)) return this.#answer(id, hook, answer, start)
      answer.then(
        (settled) => this.#answer(id, hook, settled, start),
        (error: unknown) => this.#failed(id, this.#describe(error), start),
      )
    } catch (error) {
      this.#failed(id, this.#describe(error), start)
    }
  }

  /** The check makes a plain value of it: nothing that cannot be cloned, and nothing large. */
  #answer(id: number, hook: DecidingHook, answer: unknown, start: number): void {
    const checked = this.#checked(hook, answer)
    if (typeof checked === 'string') return this.#failed(id, this.#inFile(checked), start)
    this.#running -= 1
    return this.#world.post({ type: 'answer', id, ...checked, micros: this.#since(start) })
  }

  #checked(hook: DecidingHook, answer: unknown): { readonly answer: unknown } | string {
    try {
      const checked = checkDecision(hook, answer)
      if (checked.kind === 'wrong') return checked.why
      return { answer: checked.kind === 'nothing' ? undefined : checked.decision }
    } catch {
      return `the answer of ${hook} cannot be read`
    }
  }

  #failed(id: number, problem: ThrownProblem, start: number): void {
    this.#running -= 1
    this.#world.post({ type: 'failed', id, problem, micros: this.#since(start) })
  }

  #tell(hook: ToldHook, argument: unknown): void {
    const end = this.#told.begin(hook)
    const failed = (error: unknown): void => end(this.#describe(error))
    try {
      const result = this.#hooks.get(hook)?.(argument)
      if (!isPromise(result)) return end()
      result.then(() => end(), failed)
    } catch (error) {
      failed(error)
    }
  }

  /** An error of a library, such as that of `fetch`, may have no frame in the file. */
  #describe(thrown: unknown): ThrownProblem {
    const problem = describeThrown(thrown, this.#world.ownFolder)
    return problem.file === null ? this.#inFile(problem.message) : problem
  }

  /** The line is not known: the answer was given before it was looked at. */
  readonly #inFile = (message: string): ThrownProblem => ({
    ...placeless(message),
    file: this.#world.file,
  })

  #since(start: number): number {
    return Math.round((this.#world.now() - start) * 1_000)
  }
}

const onlyOwnChanges =
  'this Node does not say what a file imports: a change of such a file holds from SIGHUP on'

const isPromise = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function'
