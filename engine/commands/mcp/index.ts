import { finished } from 'node:stream/promises'
import type { JSONRPCMessage } from '@modelcontextprotocol/server'
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio'
import packageJson from '../../../package.json' with { type: 'json' }
import { isAppKeyToken } from '../../../control/auth/app-key.ts'
import { listenedTo } from '../../../control/agents/mcp/mcp-request.ts'
import { mcpServer, type ToolHost } from '../../../control/agents/mcp/server.ts'
import { httpUrl } from '../../setting-kinds.ts'
import { type Command, type CommandInput, type CommandContext, WrongUsage } from '../command.ts'
import { type ApiAccess, apiToolHost } from './api-tool-host.ts'
import { UpdateStreams } from './update-streams.ts'

/**
 * For clients that start a program instead of opening a connection. Standard output is the
 * protocol's.
 */
export const mcp: Command = {
  name: 'mcp',
  summary: 'Connects an MCP client on standard input and output to a running tollgate.',
  options: {
    url: {
      value: 'URL',
      meaning: 'the address of its API; default TOLLGATE_URL, or http://127.0.0.1:8080',
    },
    key: {
      value: 'KEY',
      meaning: 'an application key; default TOLLGATE_KEY, which no process list shows',
    },
  },
  run: async (input, context) => {
    const access = readAccess(input, context)
    const updates = new UpdateStreams({ ...context, access })
    const host = apiToolHost(access, updates)
    // Said now, where a person sees it, instead of in the middle of a conversation.
    await host.list()
    const { input: from, output: to } = context.streams
    const transport = new StdioServerTransport(from, to)
    const onerror = (error: unknown): void =>
      context.complain(`tollgate: ${error instanceof Error ? error.message : String(error)}`)
    const served = serveStdio(() => serverOf(host, updates, onerror), { transport, onerror })
    watchListeners(transport, updates, onerror)
    const stopped = new Promise<void>((resolve) => context.onStopSignal(() => resolve()))
    await Promise.race([stopped, finished(from).catch(() => undefined)])
    updates.close()
    await served.close()
    return 0
  },
}

function serverOf(host: ToolHost, updates: UpdateStreams, onerror: (error: unknown) => void) {
  const made = mcpServer(host)
  updates.onUpdated = (uri) => void made.server.sendResourceUpdated({ uri }).catch(onerror)
  return made
}

/**
 * The SDK answers `subscriptions/listen` by itself, and sends each stream what it has asked for;
 * here is only seen what is listened to. It is watched before that answer, until the client ends.
 */
function watchListeners(
  transport: StdioServerTransport,
  { subscribe }: UpdateStreams,
  onerror: (error: unknown) => void,
): void {
  const deliver = transport.onmessage
  const watchAndDeliver = async (before: Promise<void>, message: JSONRPCMessage): Promise<void> => {
    await before
    await Promise.all(listenedTo(message).map((uri) => subscribe(uri).catch(onerror)))
    deliver?.(message)
  }
  let last: Promise<void> = Promise.resolve()
  const onmessage = (message: JSONRPCMessage): void => {
    last = watchAndDeliver(last, message)
  }
  Object.assign(transport, { onmessage })
}

function readAccess({ options }: CommandInput, { environment }: CommandContext): ApiAccess {
  const url = options['url'] ?? environment['TOLLGATE_URL'] ?? 'http://127.0.0.1:8080'
  const key = options['key'] ?? environment['TOLLGATE_KEY'] ?? ''
  const parsed = httpUrl.schema.safeParse(url)
  if (!parsed.success) throw new WrongUsage(`--url is "${url}"; allowed is ${httpUrl.allowed}`)
  if (key === '')
    throw new WrongUsage('mcp needs --key KEY or TOLLGATE_KEY; see tollgate key create')
  if (!isAppKeyToken(key))
    throw new WrongUsage('the key is no application key; see tollgate key create')
  return { url: parsed.data, key, version: packageJson.version }
}
