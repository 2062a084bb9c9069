import { defineConfig } from "vite";

// `npm run dev` finds the backend where `python server.py` has it.
export default defineConfig({ server: { host: "127.0.0.1", proxy: { "/api": "http://127.0.0.1:8000" } } });
