// An extension beside ours in the same Pi: `/intervals` says how many intervals of our file are running.
const running = new Set<unknown>();
const { setInterval: set, clearInterval: clear } = globalThis;

globalThis.setInterval = ((...given: Parameters<typeof set>) => {
	const timer = set(...given);
	if (new Error().stack?.includes("pilotfish.ts")) running.add(timer);
	return timer;
}) as typeof set;

globalThis.clearInterval = ((timer: Parameters<typeof clear>[0]) => {
	running.delete(timer);
	clear(timer);
}) as typeof clear;

export default function probe(pi: any): void {
	pi.registerCommand("intervals", {
		description: "Count our intervals",
		handler: async (_arguments: string, ctx: any) => ctx.ui.notify(`intervals running: ${running.size}`, "info"),
	});
}
